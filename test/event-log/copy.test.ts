import { DatabaseSync } from '@photostructure/sqlite';
import * as fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { copyLog } from '../../src/event-log/copy';
import type { EventLog, NewEvent } from '../../src/event-log/event-log';
import { streamNames, type LedgerLog } from '../../src/event-log/streams';
import { verifyLog } from '../../src/event-log/verify-log';
import { closeAfterwards } from '../support/closing';
import { anEvent } from '../support/events';
import { freshFolder } from '../support/folders';
import { seed, seeded } from '../support/property';
import { openSqliteLog } from '../support/sqlite-logs';

interface Place extends LedgerLog {
  readonly folder: string;
  readonly file: InstanceType<typeof DatabaseSync>;
}

const streams = streamNames('p-');
const silent = (): void => undefined;

const open = async (opening: 'create' | 'copy', folder = freshFolder()): Promise<Place> => {
  const log = await openSqliteLog(folder, streams, { opening });
  const file = new DatabaseSync(join(folder, 'events.db'));
  closeAfterwards(() => file.close());
  return { folder, streams, log, file };
};

const openBoth = async (): Promise<readonly [Place, Place]> => [await open('create'), await open('copy')];

const rowsOf = ({ file }: Place): readonly Record<string, unknown>[] =>
  file
    .prepare('SELECT stream, revision, id, type, data, metadata, recorded_at FROM events ORDER BY position')
    .all() as Record<string, unknown>[];

/** Several streams of several tenants, interleaved and in runs, long ago. */
const fill = async ({ log }: LedgerLog, count: number): Promise<void> => {
  const tenants = [randomUUID(), randomUUID()];
  const names = [...tenants.map(streams.tenant), ...tenants.map(streams.activity)];
  const heads = new Map<string, number>();
  for (let at = 0; at < count; at += 1) {
    const stream = names[Math.floor((at * at) / 3) % names.length]!;
    const head = heads.get(stream) ?? -1;
    const event = anEvent({ at }, { recordedAt: new Date(1_600_000_000_000 + 37 * at).toISOString() });
    await log.append(stream, [event], head < 0 ? 'no_stream' : head);
    heads.set(stream, head + 1);
  }
};

const withAppend = (place: Place, append: EventLog['append']): Place => ({
  ...place,
  log: { ...place.log, append },
});

/** Only the target of a copy that is not complete can be opened as one. */
const isComplete = async ({ folder }: Place): Promise<boolean> =>
  open('create', folder).then(
    () => true,
    () => false,
  );

describe('a copy of an event log', () => {
  it(seeded('holds the same events in the same order, whatever they are'), async () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 12 });
    const value = fc.jsonValue({ maxDepth: 2 });
    const event = fc.record({
      stream: fc.nat({ max: 4 }),
      type: fc.string({ minLength: 1, maxLength: 12 }),
      data: fc.dictionary(text, value, { maxKeys: 4 }),
      metadata: fc.dictionary(text, value, { maxKeys: 3 }),
      recordedAt: fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 30 }), async (history) => {
        const [from, to] = await openBoth();
        const tenants = [randomUUID(), randomUUID()];
        const names = tenants.flatMap((id) => [streams.tenant(id), streams.activity(id)]);
        const heads: Record<string, number> = {};
        for (const { stream, recordedAt, ...rest } of history) {
          const name = names[stream] ?? streams.operator();
          const one = { id: randomUUID(), ...rest, recordedAt: recordedAt.toISOString() } as NewEvent;
          const { revision } = await from.log.append(name, [one], heads[name] ?? 'no_stream');
          heads[name] = revision;
        }
        const { events, digest } = await copyLog(from, to, silent);
        expect(rowsOf(to)).toEqual(rowsOf(from));
        expect(await verifyLog(to, silent)).toMatchObject({ events, digest });
        expect([events, await isComplete(to)]).toEqual([history.length, true]);
        expect(await to.log.identity()).not.toBe(await from.log.identity());
      }),
      { seed, numRuns: 10 },
    );
  });

  it('appends no more at once than a log takes', async () => {
    const [from, to] = await openBoth();
    for (let at = -1; at < 2; at += 1)
      await from.log.append(
        streams.operator(),
        [anEvent({ text: 'x'.repeat(400_000) })],
        at < 0 ? 'no_stream' : at,
      );
    await copyLog(from, to, silent);
    expect(rowsOf(to)).toEqual(rowsOf(from));
  });

  it('omits streams that are not ours, and reports its progress', async () => {
    const [from, to] = await openBoth();
    await fill(from, 20);
    await from.log.append('somebody-elses', [anEvent()], 'no_stream');
    const steps: unknown[] = [];
    await copyLog(from, to, (...step) => steps.push(step));
    expect(rowsOf(to)).toEqual(rowsOf(from).slice(0, 20));
    expect(steps).toContainEqual(['copying', 20, 21]);
    expect(steps.at(-1)).toEqual(['comparing', 20, 21]);
  });

  it('that stopped anywhere is completed by the next one, even if the source has grown since', async () => {
    let isLast = false;
    for (let kept = 0; !isLast; kept += 1) {
      const [from, to] = await openBoth();
      await fill(from, 12);
      let left = kept;
      const append: EventLog['append'] = async (...given) => {
        if (left === 0) throw new Error('killed');
        left -= 1;
        return to.log.append(...given);
      };
      const completeCopy = async (): Promise<void> => {
        isLast = true;
        throw new Error('killed');
      };
      const dying = { ...to, log: { ...to.log, append, completeCopy } };
      await expect(copyLog(from, dying, silent)).rejects.toThrow('killed');
      expect(await isComplete(to)).toBe(false);
      const last = rowsOf(from).at(-1) as { stream: string; revision: number };
      await from.log.append(last.stream, [anEvent(), anEvent()], last.revision);
      await fill(from, 3);
      await copyLog(from, await open('copy', to.folder), silent);
      expect(rowsOf(to)).toEqual(rowsOf(from));
    }
  });

  describe('is refused, and stays incomplete,', () => {
    it.each<[string, (place: Place) => void | Promise<unknown>]>([
      ['other data', ({ file }) => file.exec(`UPDATE events SET data = '{"at":99}' WHERE position = 4`)],
      ['another time', ({ file }) => file.exec('UPDATE events SET recorded_at = 1 WHERE position = 4')],
      ['one event less', ({ file }) => file.exec('DELETE FROM events WHERE position = 8')],
      ['one event more', ({ log }) => log.append(streams.operator(), [anEvent()], 'no_stream')],
    ])('if the target holds %s', async (_, change) => {
      const [from, to] = await openBoth();
      await fill(from, 8);
      const changed = withAppend(to, async (...append) => {
        const appended = await to.log.append(...append);
        if (rowsOf(to).length === 8) await change(to);
        return appended;
      });
      await expect(copyLog(from, changed, silent)).rejects.toThrow('The target is not a copy of this source');
      expect(await isComplete(to)).toBe(false);
    });

    it('if the target has begun with another log', async () => {
      const [from, to] = await openBoth();
      await fill(from, 3);
      await to.log.append(rowsOf(from)[0]!['stream'] as string, [anEvent()], 'no_stream');
      await expect(copyLog(from, to, silent)).rejects.toMatchObject({ code: 'copy_refused' });
      expect([rowsOf(to).length, await isComplete(to)]).toEqual([1, false]);
    });

    it('if the source is empty or grows', async () => {
      const [from, to] = await openBoth();
      await expect(copyLog(from, to, silent)).rejects.toMatchObject({ code: 'copy_refused' });
      await fill(from, 3);
      const growing = withAppend(to, async (...append) => {
        await fill(from, 1);
        return to.log.append(...append);
      });
      await expect(copyLog(from, growing, silent)).rejects.toMatchObject({
        code: 'copy_refused',
        message: expect.stringContaining('was written to'),
      });
      expect(await isComplete(to)).toBe(false);
    });

    it.each([
      ['data that is not JSON', `data = '{"a'`, 'its data is not JSON'],
      ['data that is a bare string', `data = '"a"'`, 'its data is not JSON'],
      ['its own recordedAt in the metadata', `metadata = '{"recordedAt":1}'`, 'has a member recordedAt'],
      ['metadata that is not JSON', `metadata = 'x'`, 'its metadata is not a JSON object'],
      ['a gap before it', 'revision = revision + 5', 'events before it are missing'],
    ])('at an event with %s, naming it', async (_, change, says) => {
      const [from, to] = await openBoth();
      await fill(from, 6);
      from.file.exec(`UPDATE events SET ${change} WHERE position = 6`);
      const { id, revision } = rowsOf(from)[5] as { id: string; revision: number };
      const error = await copyLog(from, to, silent).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: 'copy_refused', message: expect.stringContaining(says) });
      expect((error as Error).message).toContain(
        `The event ${id} (SomethingHappened, revision ${revision} of `,
      );
      expect(await isComplete(to)).toBe(false);
    });
  });
});
