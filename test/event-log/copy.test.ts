import { DatabaseSync } from '@photostructure/sqlite';
import * as fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { copyLog, type Copied, type CopyStep } from '../../src/event-log/copy';
import type { LedgerLog } from '../../src/event-log/ledger-log';
import { logFault, type EventLog, type NewEvent } from '../../src/event-log/event-log';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { anEvent } from '../support/events';
import { freshFolder } from '../support/folders';
import { seed, seeded } from '../support/property';

interface Place extends LedgerLog {
  readonly folder: string;
  readonly file: InstanceType<typeof DatabaseSync>;
}

const free: Place[] = [];
const inUse: Place[] = [];

const openIn = async (folder: string, prefix = ''): Promise<Place> => {
  const streams = streamNames(prefix);
  const log = await sqliteEventLog(folder, streams);
  return { folder, streams, log, file: new DatabaseSync(join(folder, 'events.db')) };
};

/** An empty log. Opening one takes longer than most of these tests, so they are emptied and reused. */
const open = async (prefix = ''): Promise<Place> => {
  const streams = streamNames(prefix);
  const place = { ...(free.pop() ?? (await openIn(freshFolder()))), streams };
  inUse.push(place);
  return place;
};

const freeAll = (): void => {
  for (const place of inUse.splice(0)) {
    place.file.exec('DELETE FROM events');
    free.push(place);
  }
};

afterEach(freeAll);
afterAll(async () => {
  for (const { log, file } of free) {
    file.close();
    await log.close();
  }
});

/** Everything that a copy must keep, as stored in the file: not read through the code under test. */
const rowsOf = ({ file }: Place): readonly Record<string, unknown>[] =>
  file
    .prepare('SELECT stream, revision, id, type, data, metadata, recorded_at FROM events ORDER BY position')
    .all() as Record<string, unknown>[];

const QUIET_MS = 5;
const copy = (
  from: LedgerLog,
  to: LedgerLog,
  {
    follow = false,
    onProgress = () => undefined,
  }: { follow?: boolean; onProgress?: (step: CopyStep) => void } = {},
): Promise<Copied> => copyLog(from, to, { quietMs: QUIET_MS, follow, onProgress });

/** Several streams of several tenants, interleaved, long ago. */
const fill = async ({ log, streams }: LedgerLog, count: number): Promise<void> => {
  const tenants = [randomUUID(), randomUUID()];
  const names = [
    ...tenants.map(streams.tenant),
    ...tenants.map(streams.activity),
    streams.operator(),
    streams.activity(tenants[0]!),
  ];
  const heads = new Map<string, number>();
  for (let at = 0; at < count; at += 1) {
    const stream = names[(at * at + at) % names.length]!;
    const head = heads.get(stream) ?? -1;
    const event = anEvent({ at }, { recordedAt: new Date(1_600_000_000_000 + 37 * at).toISOString() });
    await log.append(stream, [event], head < 0 ? 'no_stream' : head);
    heads.set(stream, head + 1);
  }
};

/** The log with another append. */
const withAppend = (place: Place, append: EventLog['append']): Place => ({
  ...place,
  log: { ...place.log, append },
});

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
        const [from, to] = [await open(), await open()];
        const tenants = [randomUUID(), randomUUID()];
        const names = tenants.flatMap((id) => [from.streams.tenant(id), from.streams.activity(id)]);
        const heads: Record<string, number> = {};
        for (const { stream, recordedAt, ...rest } of history) {
          const name = names[stream] ?? from.streams.operator();
          const one = { id: randomUUID(), ...rest, recordedAt: recordedAt.toISOString() } as NewEvent;
          const { revision } = await from.log.append(name, [one], heads[name] ?? 'no_stream');
          heads[name] = revision;
        }
        const done = await copy(from, to);
        expect(rowsOf(to)).toEqual(rowsOf(from));
        expect(done).toMatchObject({ events: history.length, copied: history.length });
        expect(done.digest.source).toBe(done.digest.target);
        expect(await to.log.identity()).not.toBe(await from.log.identity());
      }),
      { seed, numRuns: 10 },
    );
  });

  it('may have another prefix, and omits streams that are not ours', async () => {
    const [from, to] = [await open('old-'), await open('new.')];
    await fill(from, 20);
    await from.log.append('somebody-elses', [anEvent()], 'no_stream');
    await to.log.append('new.somebody-elses', [anEvent(), anEvent()], 'no_stream');
    const done = await copy(from, to);
    expect(done).toMatchObject({ events: 20, copied: 20, foreign: { source: 1, target: 2 } });
    const role = ({ stream, ...rest }: Record<string, unknown>) => ({
      ...rest,
      stream: String(stream).replace(/^(old-|new\.)/, ''),
    });
    expect(rowsOf(to).slice(2).map(role)).toEqual(rowsOf(from).slice(0, 20).map(role));
    expect((await copy(from, to)).digest).toEqual(done.digest);
  });

  it('has a digest that differs for different logs', async () => {
    const [one, other] = [await open(), await open()];
    await fill(one, 5);
    await fill(other, 5);
    const first = await copy(one, await open());
    const second = await copy(other, await open());
    expect(first.digest.source).toMatch(/^[0-9a-f]{64}$/);
    expect(first.digest.source).not.toBe(second.digest.source);
  });

  it('is resumed wherever it stopped', async () => {
    const from = await open();
    await fill(from, 12);
    const whole = rowsOf(from);
    const to = await open();
    for (let kept = 0; kept <= 12; kept += 1) {
      await copy(from, to);
      to.file.exec(`DELETE FROM events WHERE position > ${kept}`);
      const done = await copy(from, to);
      expect(done).toMatchObject({ events: 12, copied: 12 - kept });
      expect(rowsOf(to)).toEqual(whole);
    }
  });

  it('reports its progress', async () => {
    const [from, to] = [await open(), await open()];
    await fill(from, 30);
    const steps: CopyStep[] = [];
    await copy(from, to, { onProgress: (step) => steps.push(step) });
    expect(steps.findLast(({ step }) => step === 'copying')).toMatchObject({ done: 30, total: 30 });
    expect(steps.at(-1)).toEqual({ step: 'comparing', done: 30, total: 30 });
  });

  it('is appended in bounded batches', async () => {
    const [from, to] = [await open(), await open()];
    const stream = from.streams.activity(randomUUID());
    await from.log.append(
      stream,
      Array.from({ length: 250 }, () => anEvent()),
      'no_stream',
    );
    for (let revision = 249; revision < 255; revision += 1)
      await from.log.append(stream, [anEvent({ text: 'x'.repeat(400_000) })], revision);
    const sizes: number[] = [];
    const counted = withAppend(to, (name, events, expected, withinMs) => {
      sizes.push(events.length);
      return to.log.append(name, events, expected, withinMs);
    });
    await copy(from, counted);
    expect(sizes).toEqual([100, 100, 52, 2, 2]);
    expect(rowsOf(to)).toEqual(rowsOf(from));
  });

  describe('is refused', () => {
    const tampered: readonly (readonly [string, string, string])[] = [
      ['data', `UPDATE events SET data = '{"at":99}' WHERE position = 4`, 'They differ in: data.'],
      ['metadata', `UPDATE events SET metadata = '{"a":1}' WHERE position = 4`, 'in: metadata.'],
      ['type', `UPDATE events SET type = 'Other' WHERE position = 4`, 'in: type.'],
      ['id', `UPDATE events SET id = '${randomUUID()}' WHERE position = 4`, 'in: id.'],
      ['time', `UPDATE events SET recorded_at = recorded_at + 1 WHERE position = 4`, 'in: recorded time.'],
      ['stream', `UPDATE events SET stream = 'tenant-${randomUUID()}' WHERE position = 4`, 'in: stream.'],
      ['revision', `UPDATE events SET revision = 900 WHERE position = 4`, 'in: revision.'],
      ['bytes', `UPDATE events SET data = '{' WHERE position = 4`, 'in: data.'],
      [
        'order',
        'UPDATE events SET position = 99 WHERE position = 4; UPDATE events SET position = 4 WHERE position = 5; UPDATE events SET position = 5 WHERE position = 99',
        'They differ in: ',
      ],
      ['one event less', 'DELETE FROM events WHERE position = 4', 'They differ in: '],
    ];

    it.each(tampered)('if the target was changed: %s', async (_, change, says) => {
      const [from, to] = [await open(), await open()];
      await fill(from, 8);
      await copy(from, to);
      to.file.exec(change);
      const before = rowsOf(to);
      const error = await copy(from, to).catch((reason: unknown) => reason as Error);
      expect(error).toMatchObject({ code: 'copy_differs', message: expect.stringContaining(says) });
      expect((error as Error).message).toContain('event number 4 is ');
      expect(rowsOf(to)).toEqual(before);
    });

    it('if the target holds the events of another log', async () => {
      const [from, to] = [await open(), await open()];
      await fill(from, 3);
      await fill(to, 1);
      const completeCopy = jest.spyOn(to.log, 'completeCopy');
      await expect(copy(from, to)).rejects.toMatchObject({ code: 'copy_differs' });
      expect(rowsOf(to)).toHaveLength(1);
      expect(completeCopy).not.toHaveBeenCalled();
    });

    it('if the target continues after the end of the source', async () => {
      const [from, to] = [await open(), await open()];
      await fill(from, 3);
      await copy(from, to);
      await to.log.append(to.streams.tenant(randomUUID()), [anEvent()], 'no_stream');
      await expect(copy(from, to)).rejects.toMatchObject({
        code: 'copy_differs',
        message: expect.stringContaining('it also contains '),
      });
    });

    it('if both are the same log, or the source is empty', async () => {
      const from = await open();
      await expect(copy(from, await open())).rejects.toMatchObject({ code: 'copy_refused' });
      await fill(from, 2);
      const again = await openIn(from.folder);
      const refused = await copy(from, again).catch((reason: unknown) => reason);
      again.file.close();
      await again.log.close();
      expect(refused).toMatchObject({
        code: 'copy_refused',
        message: expect.stringContaining('the same event log'),
      });
    });

    const odd: readonly (readonly [string, string, string])[] = [
      ['data that is not JSON', `data = '{"a'`, 'its data is not JSON'],
      ['data that is a bare string', `data = '"a"'`, 'its data is not JSON'],
      ['its own recordedAt in the metadata', `metadata = '{"recordedAt":1}'`, 'has a member recordedAt'],
      ['metadata that is not JSON', `metadata = 'x'`, 'its metadata is not a JSON object'],
      ['metadata that is a list', `metadata = '[1]'`, 'its metadata is not a JSON object'],
      ['an infinite number', `data = '{"a":{"b":[1e999]}}'`, 'a number that is too large'],
      ['such a number in the metadata', `metadata = '{"b":-1e999}'`, 'a number that is too large'],
    ];

    it.each(odd)('at an event with %s, naming it', async (_, change, says) => {
      const [from, to] = [await open(), await open()];
      await fill(from, 6);
      from.file.exec(`UPDATE events SET ${change} WHERE position = 5`);
      const id = rowsOf(from)[4]!['id'] as string;
      const error = await copy(from, to).catch((reason: unknown) => reason as Error);
      expect(error).toMatchObject({ code: 'copy_refused', message: expect.stringContaining(says) });
      expect((error as Error).message).toContain(`The event ${id} (SomethingHappened, revision `);
      expect(rowsOf(to)).toEqual(rowsOf(from).slice(0, rowsOf(to).length));
    });

    it('if the start of a stream is missing in the source', async () => {
      const [from, to] = [await open(), await open()];
      const stream = from.streams.tenant(randomUUID());
      await from.log.append(stream, [anEvent(), anEvent()], 'no_stream');
      from.file.exec('DELETE FROM events WHERE revision = 0');
      await expect(copy(from, to)).rejects.toMatchObject({
        code: 'copy_refused',
        message: expect.stringContaining(`the stream ${stream} lacks revision 0 before this event.`),
      });
    });

    it('if events are missing in the source, wherever the copy stopped', async () => {
      const from = await open();
      const stream = from.streams.activity(randomUUID());
      await fill(from, 10);
      await from.log.append(stream, [anEvent(), anEvent(), anEvent(), anEvent()], 'no_stream');
      const to = await open();
      await copy(from, to);
      from.file.exec(`DELETE FROM events WHERE stream = '${stream}' AND revision IN (1, 2)`);
      for (const kept of [12, 11, 5, 0]) {
        to.file.exec(`DELETE FROM events WHERE position > ${kept}`);
        await expect(copy(from, to)).rejects.toMatchObject({
          code: 'copy_refused',
          message: expect.stringMatching(
            /^The event \S+ \(SomethingHappened, revision 3 of \S+\) cannot be copied: Events are missing from the log: the stream \S+ lacks revisions 1 to 2 before this event\.$/,
          ),
        });
      }
    });
  });

  describe('from a growing source', () => {
    /** Its head moves on at each of the first reads, this many times. */
    const growing = (place: Place, times: number): Place => {
      let left = times;
      const stream = place.streams.tenant(randomUUID());
      const head: EventLog['head'] = async () => {
        if (left > 0)
          await place.log.append(stream, [anEvent()], left === times ? 'no_stream' : times - left - 1);
        if (left > 0) left -= 1;
        return place.log.head();
      };
      return { ...place, log: { ...place.log, head } };
    };

    it('is refused before anything is copied', async () => {
      const [from, to] = [await open(), await open()];
      await fill(from, 3);
      await expect(copy(growing(from, 2), to)).rejects.toMatchObject({ code: 'copy_source_grows' });
      expect(rowsOf(to)).toEqual([]);
    });

    it('is refused if growth is detected at the end, and can be continued later', async () => {
      const [from, to] = [await open(), await open()];
      await fill(from, 3);
      const late = withAppend(to, async (...append) => {
        const answer = await to.log.append(...append);
        await fill(from, 1);
        return answer;
      });
      await expect(copy(from, late)).rejects.toMatchObject({ code: 'copy_source_grows' });
      const copied = rowsOf(to).length;
      expect(copied).toBe(3);
      const done = await copy(from, to);
      expect(done).toMatchObject({ events: rowsOf(from).length, copied: rowsOf(from).length - 3 });
      expect(rowsOf(to)).toEqual(rowsOf(from));
    });

    it('is complete if it follows until the source is quiet', async () => {
      const [from, to] = [await open(), await open()];
      await fill(from, 3);
      const done = await copy(growing(from, 5), to, { follow: true });
      expect(done).toMatchObject({ events: 8, copied: 8 });
      expect(done.digest.source).toBe(done.digest.target);
      expect(rowsOf(to)).toEqual(rowsOf(from));
    });
  });

  describe('to a failing target', () => {
    it.each(['log_unavailable', 'outcome_unknown'] as const)(
      'holds every event once after %s',
      async (code) => {
        const [from, to] = [await open(), await open()];
        await fill(from, 10);
        let calls = 0;
        const troubled = withAppend(to, async (...append) => {
          calls += 1;
          if (calls !== 3) return to.log.append(...append);
          if (code === 'outcome_unknown') await to.log.append(...append);
          throw logFault(code, 'The target had an accident.');
        });
        expect(await copy(from, troubled)).toMatchObject({ events: 10, copied: 10 });
        expect(rowsOf(to)).toEqual(rowsOf(from));
      },
    );

    it('holds every event once after either log could not be read', async () => {
      const [from, to] = [await open(), await open()];
      await fill(from, 20);
      let reads = 0;
      const failing = (place: Place): Place => {
        const readAll: EventLog['readAll'] = async function* (where) {
          reads += 1;
          for await (const batch of place.log.readAll(where)) {
            yield batch.slice(0, 5);
            if (reads <= 4) throw logFault('log_unavailable', 'The connection was cut.');
            yield batch.slice(5);
          }
        };
        return { ...place, log: { ...place.log, readAll } };
      };
      expect(await copy(failing(from), failing(to))).toMatchObject({ events: 20 });
      expect(reads).toBeGreaterThan(4);
      expect(rowsOf(to)).toEqual(rowsOf(from));
    });

    it('waits for a source that cannot report its head, whenever it is asked', async () => {
      const once = async (follow: boolean): Promise<void> => {
        const [from, to] = [await open(), await open()];
        await fill(from, 5);
        const asked = { identity: 0, head: 0 };
        /** At the start, when checking for growth, and at the end. */
        const failing = (name: keyof typeof asked, ...times: readonly number[]): void => {
          asked[name] += 1;
          if (times.includes(asked[name])) throw logFault('log_unavailable', 'The connection was cut.');
        };
        const identity: EventLog['identity'] = async () => {
          failing('identity', 1);
          return from.log.identity();
        };
        const head: EventLog['head'] = async () => {
          failing('head', 1, 3, 6);
          return from.log.head();
        };
        const away = { ...from, log: { ...from.log, identity, head } };
        expect(await copy(away, to, { follow })).toMatchObject({ events: 5, copied: 5 });
        expect(asked.head).toBeGreaterThan(3);
        expect(rowsOf(to)).toEqual(rowsOf(from));
      };
      await Promise.all([once(false), once(true)]);
    });

    it('detects that the target did not keep what it acknowledged', async () => {
      const [from, to] = [await open(), await open()];
      await fill(from, 10);
      const first = await copy(from, to);
      const forgetful = withAppend(to, async () => ({ revision: 0, position: first.digest.source }));
      to.file.exec('DELETE FROM events WHERE position > 7');
      await expect(copy(from, forgetful)).rejects.toMatchObject({
        code: 'copy_differs',
        message: expect.stringContaining('it has only 7 events'),
      });
    });

    it('detects that the target stored something else', async () => {
      const [from, to] = [await open(), await open()];
      await fill(from, 10);
      const other = withAppend(to, (stream, events, ...more) =>
        to.log.append(
          stream,
          events.map((event) => ({ ...event, data: { ...event.data, more: 1 } })),
          ...more,
        ),
      );
      await expect(copy(from, other)).rejects.toMatchObject({
        code: 'copy_differs',
        message: expect.stringContaining('They differ in: data.'),
      });
    });
  });
});
