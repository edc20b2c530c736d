import { randomUUID } from 'node:crypto';
import { MessageChannel } from 'node:worker_threads';
import { readingWith, type Reading } from '../../src/audit/reading';
import { readingTasks } from '../../src/audit/reading-tasks';
import { monotonicMs } from '../../src/async/clock';
import { createTenant } from '../../src/domain/tenant';
import type { EventLog } from '../../src/event-log/event-log';
import { condition } from '../../src/async/condition';
import { freshFolder } from '../support/folders';
import { OWNER } from '../support/given';
import { byOperator, closeLedgers, openLedger, streams, type OpenLedger } from '../support/ledgers';
import { until } from '../support/waiting';

const NEVER = new AbortController().signal;
const TIME = '2099-01-01T00:00:00.000Z';

/** In this thread; the protocol is the same. */
describe('reads of the state of a tenant as of a moment', () => {
  let program: OpenLedger;
  let tenants: readonly string[];
  const going = condition();
  let held = true;
  let batches = 0;
  let underWay = 0;
  let most = 0;
  afterAll(closeLedgers);

  /** Each batch is read when the test lets it. */
  const heldLog = (log: EventLog): EventLog => ({
    ...log,
    readStream: async function* (stream, after) {
      underWay += 1;
      most = Math.max(most, underWay);
      try {
        while (held) await going.wait();
        yield* log.readStream(stream, after);
      } finally {
        underWay -= 1;
      }
    },
  });
  /** Never ends. */
  const endlessLog = (log: EventLog): EventLog => ({
    ...log,
    readStream: async function* () {
      for (;;) {
        batches += 1;
        yield [];
      }
    },
  });
  const readingOf = (around: (log: EventLog) => EventLog): Reading => {
    const work = readingTasks(Promise.resolve({ log: around(program.log), streams }));
    return readingWith((task) => {
      const { port1, port2 } = new MessageChannel();
      void work(task, port2);
      return port1;
    });
  };
  const at = (reading: Reading, tenantId: string, withinMs = 20_000, gone = NEVER) =>
    reading.tenantAt(tenantId, { time: TIME }, { deadline: monotonicMs() + withinMs, gone });
  const search = (reading: Reading, tenantId: string, withinMs = 20_000, gone = NEVER) =>
    reading.search(
      tenantId,
      { id: randomUUID(), after: { tenant: -1, activity: -1 } },
      { deadline: monotonicMs() + withinMs, gone },
    );
  const settled = async (reads: readonly Promise<unknown>[]): Promise<readonly string[]> =>
    (await Promise.allSettled(reads)).map(({ status }) => status);
  const letGo = (): void => {
    held = false;
    going.notify();
  };

  beforeAll(async () => {
    program = await openLedger(freshFolder());
    tenants = [randomUUID(), randomUUID()];
    const input = { name: 'Acme', ownerId: OWNER, includedMonthlyActiveTokens: 0 };
    for (const tenantId of tenants) await program.ledger.execute(byOperator(tenantId, createTenant(input)));
  });
  beforeEach(() => {
    [held, batches, most] = [true, 0, 0];
  });

  it('are two at a time per tenant, and the others wait in order', async () => {
    const reading = readingOf(heldLog);
    const reads = Array.from({ length: 5 }, () => at(reading, tenants[0]!));
    const other = at(reading, tenants[1]!);
    await until(() => underWay === 3);
    letGo();
    expect((await Promise.all(reads)).map((document) => document?.name)).toEqual(Array(5).fill('Acme'));
    expect((await other)?.name).toBe('Acme');
    expect(most).toBe(3);
  });

  it('share their room with searches for an event', async () => {
    const reading = readingOf(heldLog);
    const reads = [search, at, search, at, search].map((read) => read(reading, tenants[0]!));
    const other = search(reading, tenants[1]!);
    await until(() => underWay === 3);
    letGo();
    await Promise.all([...reads, other]);
    expect(most).toBe(3);
  });

  it('that find no room in time fail with a reason, and leave the room to others', async () => {
    const reading = readingOf(heldLog);
    const first = [at(reading, tenants[0]!), at(reading, tenants[0]!)];
    await until(() => underWay === 2);
    await expect(at(reading, tenants[0]!, 20)).rejects.toMatchObject({ code: 'log_unavailable' });
    const gone = new AbortController();
    const left = at(reading, tenants[0]!, 20_000, gone.signal);
    gone.abort();
    await expect(left).rejects.toMatchObject({ code: 'log_unavailable' });
    letGo();
    expect(await settled([...first, at(reading, tenants[0]!)])).toEqual(Array(3).fill('fulfilled'));
  });

  const leaving = (gone: AbortController): number => {
    setTimeout(() => gone.abort(), 100);
    return 20_000;
  };
  it.each([
    ['end with their deadline', at, () => 200],
    ['end with their caller', at, leaving],
    ['that search for an event end with their deadline', search, () => 200],
    ['that search for an event end with their caller', search, leaving],
  ])('%s', async (_, begin, withinMs) => {
    const reading = readingOf(endlessLog);
    const gone = new AbortController();
    const read = begin(reading, tenants[0]!, withinMs(gone), gone.signal);
    await expect(read).rejects.toMatchObject({ code: 'log_unavailable' });
    let [before, idle] = [batches, 0];
    // A read that goes on reads a batch in nearly every turn.
    for (let turn = 0; turn < 200; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      idle = batches === before ? idle + 1 : 0;
      before = batches;
    }
    expect(batches).toBeGreaterThan(0);
    expect(idle).toBeGreaterThan(100);
  });

  it('of a tenant that did not exist are empty', async () => {
    letGo();
    expect(await at(readingOf(heldLog), randomUUID())).toBeUndefined();
  });
});
