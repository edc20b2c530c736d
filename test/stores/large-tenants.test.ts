import { threadMs } from '../../src/async/clock';
import { keyStatusIn } from '../../src/domain/authority';
import type { EventLog } from '../../src/event-log/event-log';
import { anEvent, eventsOf } from '../support/events';
import { freshFolder } from '../support/folders';
import {
  addKeys,
  appendMany,
  makeCustomer,
  openLedger,
  rename,
  soon,
  streams,
  type Customer,
  type OpenLedger,
} from '../support/ledgers';

const NOW = new Date().toISOString();

/** Revokes all keys but the first. */
const revokeMany = async ({ log }: OpenLedger, { tenantId, applicationId, keyId }: Customer) => {
  const stream = streams.tenant(tenantId);
  const added = (await eventsOf(log.readStream(stream))).filter(({ type }) => type === 'KeyAdded');
  const ids = added.map(({ data }) => (data as { keyId: string }).keyId).filter((id) => id !== keyId);
  const metadata = { version: 1 };
  const revoked = ids.map((id) => anEvent({ keyId: id, applicationId }, { type: 'KeyRevoked', metadata }));
  await appendMany(log, stream, revoked);
};

/** The longest time that this thread was blocked during the work. */
const longestHold = async (work: Promise<unknown>): Promise<number> => {
  let longest = 0;
  let going = true;
  const watch = (last: number): void => {
    const now = threadMs();
    longest = Math.max(longest, now - last);
    if (going) setImmediate(watch, now);
  };
  setImmediate(watch, threadMs());
  await work;
  going = false;
  return longest;
};

describe('a tenant with 12,000 keys', () => {
  it('is folded in time linear in its keys, and others continue meanwhile', async () => {
    const folder = freshFolder();
    const writer = await openLedger(folder);
    const customer = await makeCustomer(writer);
    await addKeys(writer.log, customer, 12_000);
    await revokeMany(writer, customer);
    await writer.close();

    const program = await openLedger(folder);
    const begun = threadMs();
    const held = await longestHold(program.ledger.execute(rename(customer, 'First')));
    // When it was quadratic, it took 22 s and blocked the thread for 4 s; the machine may be busy.
    expect(threadMs() - begun).toBeLessThan(8_000);
    expect(held).toBeLessThan(250);
    const { tenant } = await program.folds.asOf(customer.tenantId, -Infinity, soon());
    if (tenant.status !== 'active') throw new Error('It was made.');
    const statuses = [...tenant.keys.keys()].map((digest) => keyStatusIn(tenant, digest, NOW).status);
    expect(statuses.filter((status) => status === 'valid')).toHaveLength(1);
    expect(statuses.filter((status) => status === 'revoked')).toHaveLength(12_000);
  });
});

describe('two tenants, only one of which fits in the cache', () => {
  it('keep the later state, even of the one evicted while it was being read', async () => {
    const folder = freshFolder();
    const holding: (() => Promise<void>)[] = [];
    const around = (log: EventLog): EventLog => ({
      ...log,
      readStream: async function* (stream, after) {
        yield* log.readStream(stream, after);
        await holding.shift()?.();
      },
    });
    const program = await openLedger(folder, around, { maxBytes: 1 });
    const [customer, another] = [await makeCustomer(program), await makeCustomer(program)];
    const other = await openLedger(folder);
    holding.push(async () => {
      await program.folds.asOf(another.tenantId, -Infinity, soon());
      await other.ledger.execute(rename(customer, 'Meanwhile'));
    });
    await program.folds.asOf(customer.tenantId, threadMs(), soon());
    const { tenant } = await program.folds.asOf(customer.tenantId, threadMs(), soon());
    expect(tenant).toMatchObject({ name: 'Meanwhile' });
  });
});
