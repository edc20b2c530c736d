import { randomUUID } from 'node:crypto';
import { findEvent, knownPlace } from '../../src/audit/find-event';
import type { ReadHistory } from '../../src/audit/history';
import type { EventLog, LoggedEvent } from '../../src/event-log/event-log';
import type { LedgerLog } from '../../src/event-log/streams';
import type { TenantReader } from '../../src/projecting/live-set';
import { eventsOf, someEvents } from '../support/events';
import { freshFolder } from '../support/folders';
import { openLogIn } from '../support/profile';

const EVENTS = 20_000;
const GROUP = 1_000;
const SEEK = 256;

describe('an event that is looked for by its id', () => {
  let ledgerLog: LedgerLog;
  let read = 0;
  const tenantId = randomUUID();
  const events: LoggedEvent[] = [];
  beforeAll(async () => {
    const { log, streams } = await openLogIn(freshFolder());
    await log.append(streams.tenant(tenantId), someEvents(3), 'no_stream');
    for (let at = 0; at < EVENTS; at += GROUP)
      await log.append(
        streams.activity(tenantId),
        someEvents(GROUP),
        at === 0 ? 'no_stream' : at - 1,
        20_000,
      );
    events.push(...(await eventsOf(log.readTenant(tenantId))));
    const readStream: EventLog['readStream'] = async function* (...dependencies) {
      for await (const batch of log.readStream(...dependencies)) {
        read += batch.length;
        yield batch;
      }
    };
    ledgerLog = { log: { ...log, readStream }, streams };
  });
  afterAll(() => ledgerLog.log.close());

  /** A read model that has applied this many events of activity. */
  const readerUpTo = (applied: number) => {
    const isApplied = ({ stream, revision }: LoggedEvent): boolean =>
      stream.includes('tenant-') || revision < applied;
    const positions = new Map(events.filter(isApplied).map(({ id, position }) => [id, position]));
    const get: TenantReader['get'] = async (_, collection, key) => {
      const position = collection === 'log_rows' ? positions.get(key) : undefined;
      return position === undefined ? undefined : { position };
    };
    const progress: TenantReader['progress'] = async () => [
      { tenant: 2, activity: applied - 1, position: [...positions.values()].at(-1) ?? '' },
    ];
    return { get, progress };
  };
  const find = async (reader: ReturnType<typeof readerUpTo>, id: string) => {
    read = 0;
    const readHistory: ReadHistory = (_, __, readIn) => readIn(ledgerLog);
    const until = { deadline: Infinity, gone: new AbortController().signal };
    const known = await knownPlace(reader as unknown as TenantReader, tenantId, id);
    return findEvent({ ledgerLog, readHistory }, known, { tenantId, id, ...until });
  };

  it('is found, or not, with a bounded number of reads, however many there are', async () => {
    const reader = readerUpTo(EVENTS);
    for (const at of [0, 2, 3, 4, EVENTS / 2, EVENTS + 1, EVENTS + 2]) {
      expect(await find(reader, events[at]!.id)).toEqual(events[at]);
      expect(read).toBeLessThanOrEqual(2 * SEEK);
    }
    expect(await find(reader, randomUUID())).toBeUndefined();
    expect(read).toBe(0);
  });

  it('is searched only after what the read model has applied', async () => {
    const reader = readerUpTo(EVENTS - 700);
    expect(await find(reader, events.at(-1)!.id)).toEqual(events.at(-1));
    expect(read).toBeLessThanOrEqual(700 + 2 * SEEK);
    expect(await find(reader, randomUUID())).toBeUndefined();
    expect(read).toBe(700);
  });
});
