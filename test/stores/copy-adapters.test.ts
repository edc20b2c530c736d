import { DatabaseSync } from '@photostructure/sqlite';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { pause } from '../../src/async/clock';
import { copyLog } from '../../src/event-log/copy';
import { eventStoreDbEventLog } from '../../src/event-log/eventstoredb/eventstoredb-event-log';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames, type LedgerLog, type Streams } from '../../src/event-log/streams';
import { verifyLog } from '../../src/event-log/verify-log';
import { fillBusyLog } from '../support/busy-log';
import { closeAfterwards } from '../support/closing';
import { startStandIn, type StandIn } from '../support/event-store/stand-in';
import { anEvent } from '../support/events';
import { freshFolder } from '../support/folders';
import { EMBEDDED } from '../support/profile';
import { command, spawnProgram } from '../support/service';

/** From one adapter to the other and back: with a real server if one is named, else with the stand-in. */
const REAL = process.env['TEST_EVENTSTORE_URL'];
/** `npm run campaign -- copy` copies 20,000, and kills each copy three times. */
const EVENTS = Number(process.env['EVENTS'] ?? 2_000);
const KILLS = Number(process.env['KILLS'] ?? 1);
const silent = (): void => undefined;

let standIn: StandIn | undefined;
beforeAll(async () => {
  if (REAL === undefined) standIn = await startStandIn();
});
afterAll(() => standIn?.stop());

const newStreams = (): Streams => streamNames(`copy-${randomUUID()}.`);

const embedded = async (streams: Streams, folder: string, opening: 'create' | 'copy'): Promise<LedgerLog> => {
  const log = await sqliteEventLog(folder, streams, { opening });
  closeAfterwards(log.close);
  return { log, streams };
};

const eventStore = async (streams: Streams): Promise<LedgerLog> => {
  const around = { waitMs: 10_000, onError: silent, isCopy: true };
  const log = await eventStoreDbEventLog(REAL ?? standIn?.url ?? '', streams, around);
  closeAfterwards(log.close);
  return { log, streams };
};

const rowsIn = (folder: string): readonly unknown[] => {
  const db = new DatabaseSync(join(folder, 'events.db'));
  try {
    return db.prepare('SELECT * FROM events ORDER BY position').all();
  } finally {
    db.close();
  }
};

const odd = [
  { 'Ω\u2028': ['\u0000', 'e\u0301', '😀', '\ud800'], b: [], a: {}, '2': 1, '1': 2 },
  { large: 9_007_199_254_740_991, small: 5e-324, minus: -1.5, nothing: null, text: 'x'.repeat(70_000) },
  { type: 'Buffer', data: [1, 2] },
  JSON.parse('{"__proto__": {"a": 1}, "constructor": 2, "toString": 3}') as Record<string, unknown>,
];

describe('a log copied from SQLite to EventStoreDB and back', () => {
  it('is identical, row for row, including recorded times', async () => {
    const [first, last] = [freshFolder(), freshFolder()];
    const streams = newStreams();
    const [from, between] = [await embedded(streams, first, 'create'), await eventStore(streams)];
    const to = await embedded(streams, last, 'copy');
    await fillBusyLog(from, 150, 20);
    const stream = streams.tenant(randomUUID());
    await from.log.append(
      stream,
      odd.map((data) => anEvent(data, { metadata: { ...data, at: 'now' } })),
      'no_stream',
    );
    await from.log.append(
      streams.operator(),
      [anEvent([1, null] as never), anEvent(null as never), anEvent(0 as never)],
      'no_stream',
    );
    const again = anEvent({ said: 'twice' });
    for (const [other, expected] of [
      [streams.activity(randomUUID()), 'no_stream'] as const,
      [stream, 3] as const,
    ])
      await from.log.append(other, [again], expected);
    await from.log.append(stream, [again], 4);
    const there = await copyLog(from, between, silent);
    expect(there.events).toBe(160);
    expect(await copyLog(between, to, silent)).toEqual(there);
    expect(rowsIn(last)).toEqual(rowsIn(first));
    for (const second of [eventStore(streams), embedded(streams, last, 'copy')])
      await expect(second).rejects.toMatchObject({ code: 'copy_refused' });
    for (const ledgerLog of [from, between, to])
      expect(await verifyLog(ledgerLog, silent)).toMatchObject(there);
  });

  const countIn = async ({ log }: LedgerLog): Promise<number> => {
    const head = await log.head();
    return head === undefined ? 0 : log.distance(undefined, head.position);
  };

  it(
    'is complete and usable only after the command was repeated, if it was killed on the way',
    async () => {
      const streams = newStreams();
      const [first, last] = [freshFolder(), freshFolder()];
      const url = REAL ?? standIn?.url ?? '';
      const source = await sqliteEventLog(first, streams);
      await fillBusyLog({ log: source, streams }, EVENTS, 500);
      await source.close();
      const env = { ...EMBEDDED, STREAM_PREFIX: streams.prefix };
      const targets = [
        [first, url, await eventStore(streams)],
        [url, last, await embedded(streams, last, 'copy')],
      ] as const;
      const digests: unknown[] = [];
      for (const [from, to, target] of targets) {
        const line = ['log', 'copy', '--from', from, '--to', to, '--json'];
        for (let kill = 1; kill <= KILLS; kill += 1) {
          const child = spawnProgram(line, env);
          const ended = once(child, 'close');
          while (child.exitCode === null && (await countIn(target)) < (EVENTS * kill) / (KILLS + 1))
            await pause(20);
          child.kill('SIGKILL');
          expect(await ended).toEqual([null, 'SIGKILL']);
          expect(await command(['log', 'verify', to], env)).toMatchObject({
            code: 1,
            stderr: expect.stringContaining('[log_incomplete]'),
          });
        }
        const { code, stdout } = await command(line, env);
        expect(code).toBe(0);
        const { events, digest } = JSON.parse(stdout) as { events: number; digest: string };
        expect(events).toBe(EVENTS);
        const verified = await command(['log', 'verify', to, '--json'], env);
        digests.push(digest, (JSON.parse(verified.stdout) as { digest: string }).digest);
      }
      expect(new Set(digests).size).toBe(1);
      expect(rowsIn(last)).toEqual(rowsIn(first));
    },
    60_000 + EVENTS * 50,
  );
});
