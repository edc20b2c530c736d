import { randomUUID } from 'node:crypto';
import { monotonicMs, condition } from '../../src/async/clock';
import { fairSlices } from '../../src/audit/fair-slices';
import { historyReads, type ReadHistory } from '../../src/audit/history';
import { tenantAt } from '../../src/audit/past-tenant';
import { createTenant, type Tenant } from '../../src/domain/tenant';
import type { EventLog } from '../../src/event-log/event-log';
import { freshFolder } from '../support/folders';
import { OWNER } from '../support/given';
import { byOperator, openLedger, streams, type OpenLedger } from '../support/ledgers';
import { until } from '../support/waiting';

const NEVER = new AbortController().signal;
const TIME = '2099-01-01T00:00:00.000Z';

describe('reads of the history of a tenant', () => {
  let program: OpenLedger;
  let tenants: readonly string[];
  const going = condition();
  let held = true;
  let batches = 0;
  let underWay = 0;
  let most = 0;

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
  const endlessLog = (log: EventLog): EventLog => ({
    ...log,
    readStream: async function* () {
      for (;;) {
        batches += 1;
        yield [];
      }
    },
  });
  const readingOf = (around: (log: EventLog) => EventLog): ReadHistory =>
    historyReads({ log: around(program.log), streams }, fairSlices());
  const at = (read: ReadHistory, tenantId: string, withinMs = 20_000, gone = NEVER): Promise<Tenant> =>
    read(tenantId, { deadline: monotonicMs() + withinMs, gone }, (ledgerLog) =>
      tenantAt(ledgerLog, tenantId, { time: TIME }),
    );
  const settled = async (reads: readonly Promise<unknown>[]): Promise<readonly string[]> =>
    (await Promise.allSettled(reads)).map(({ status }) => status);
  const letGo = (): void => {
    held = false;
    going.notify();
  };

  beforeEach(async () => {
    [held, batches, most] = [true, 0, 0];
    program = await openLedger(freshFolder());
    tenants = [randomUUID(), randomUUID()];
    const input = { name: 'Acme', ownerId: OWNER, includedMonthlyActiveTokens: 0 };
    for (const tenantId of tenants) await program.ledger.execute(byOperator(tenantId, createTenant(input)));
  });

  it('are two at a time per tenant, and the others wait in order', async () => {
    const reading = readingOf(heldLog);
    const reads = Array.from({ length: 5 }, () => at(reading, tenants[0]!));
    const other = at(reading, tenants[1]!);
    await until(() => underWay === 3);
    letGo();
    expect(await Promise.all(reads)).toEqual(Array(5).fill(expect.objectContaining({ name: 'Acme' })));
    expect(await other).toMatchObject({ name: 'Acme' });
    expect(most).toBe(3);
  });

  it('that find no room in time fail with a reason, and leave the room to others', async () => {
    const reading = readingOf(heldLog);
    const first = [at(reading, tenants[0]!), at(reading, tenants[0]!)];
    await until(() => underWay === 2);
    await expect(at(reading, tenants[0]!, 20)).rejects.toMatchObject({ code: 'log_unavailable' });
    letGo();
    expect(await settled([...first, at(reading, tenants[0]!)])).toEqual(Array(3).fill('fulfilled'));
  });

  it.each([
    ['deadline', 200],
    ['caller', 20_000],
  ])('end with their %s', async (_, withinMs) => {
    const reading = readingOf(endlessLog);
    const gone = new AbortController();
    const read = at(reading, tenants[0]!, withinMs, gone.signal);
    setTimeout(() => gone.abort(), withinMs === 200 ? 20_000 : 100).unref();
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
});
