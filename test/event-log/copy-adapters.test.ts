import { DatabaseSync } from '@photostructure/sqlite';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { copyLog } from '../../src/event-log/copy';
import type { LedgerLog } from '../../src/event-log/ledger-log';
import { eventStoreDbEventLog } from '../../src/event-log/eventstoredb/eventstoredb-event-log';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { verifyLog } from '../../src/event-log/verify-log';
import { closeAfterwards } from '../support/closing';
import { fillBusyLog } from '../support/busy-log';
import { startStandIn, type StandIn } from '../support/event-store/stand-in';
import { anEvent } from '../support/events';
import { freshFolder } from '../support/folders';

/** From one adapter to the other and back: with a real server if one is named, else with the stand-in. */
const REAL = process.env['TEST_EVENTSTORE_URL'];
const options = { quietMs: 5, follow: false, onProgress: () => undefined };

let standIn: StandIn | undefined;
beforeAll(async () => {
  if (REAL === undefined) standIn = await startStandIn();
});
afterAll(() => standIn?.stop());

const embedded = async (folder: string): Promise<LedgerLog> => {
  const streams = streamNames('old-');
  const log = await sqliteEventLog(folder, streams);
  closeAfterwards(log.close);
  return { log, streams };
};

const eventStore = async (): Promise<LedgerLog> => {
  const streams = streamNames(`copy-${randomUUID()}.`);
  const around = { waitMs: 10_000, onError: () => undefined };
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
    const [from, between, to] = [await embedded(first), await eventStore(), await embedded(last)];
    await fillBusyLog(from, 150, 20);
    const stream = from.streams.tenant(randomUUID());
    await from.log.append(
      stream,
      odd.map((data) => anEvent(data, { metadata: { ...data, at: 'now' } })),
      'no_stream',
    );
    await from.log.append(
      from.streams.operator(),
      [anEvent([1, null] as never), anEvent(null as never), anEvent(0 as never)],
      'no_stream',
    );
    const again = anEvent({ said: 'twice' });
    for (const [other, expected] of [
      [from.streams.activity(randomUUID()), 'no_stream'] as const,
      [stream, 3] as const,
    ])
      await from.log.append(other, [again], expected);
    await from.log.append(stream, [again], 4);
    const there = await copyLog(from, between, options);
    const back = await copyLog(between, to, options);
    expect([there.events, there.copied, back.copied]).toEqual([160, 160, 160]);
    expect(new Set([...Object.values(there.digest), ...Object.values(back.digest)]).size).toBe(1);
    expect(rowsIn(last)).toEqual(rowsIn(first));
    const verified = await Promise.all(
      [from, between, to].map((ledgerLog) =>
        verifyLog(ledgerLog, { earlier: undefined, onProgress: () => undefined }),
      ),
    );
    expect(new Set(verified.map(({ digest }) => digest))).toEqual(new Set([there.digest.source]));
    expect(verified.map(({ noted }) => noted.copy)).toEqual([1, 1, 1]);
    for (const ledgerLog of [from, between, to])
      for (const earlier of verified)
        expect(await verifyLog(ledgerLog, { earlier, onProgress: () => undefined })).toMatchObject({
          earlier: 'unchanged',
          events: 160,
        });
  });

  it('fits into its appends, also with the times that the event store keeps in the metadata', async () => {
    const [from, to] = [await embedded(freshFolder()), await eventStore()];
    const events = Array.from({ length: 60 }, () => anEvent({ text: 'x'.repeat(20_100) }));
    const stream = from.streams.activity(randomUUID());
    for (let at = 0; at < events.length; at += 30)
      await from.log.append(stream, events.slice(at, at + 30), at === 0 ? 'no_stream' : at - 1);
    expect((await copyLog(from, to, options)).copied).toBe(60);
  });
});
