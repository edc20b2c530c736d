import { monotonicMs, threadMs } from '../../src/async/clock';
import { changePlan } from '../../src/domain/tenant';
import type { EventLog } from '../../src/event-log/event-log';
import { emptyFold, foldEvent, tenantEventOf, type Fold } from '../../src/ledger/fold';
import { boundedCache } from '../../src/ledger/folds';
import { eventsOf } from '../support/events';
import { freshFolder } from '../support/folders';
import {
  byOperator,
  fillStream,
  makeCustomer,
  openLedger,
  rename,
  streams,
  textOf,
  type Customer,
  type OpenLedger,
  soon,
} from '../support/ledgers';
import { editLog } from '../support/sqlite-logs';
import { until } from '../support/waiting';

const foldOf = async (program: OpenLedger, { tenantId }: Customer): Promise<string> =>
  textOf(await program.folds.asOf(tenantId, -Infinity, soon()));

const atHead = (program: OpenLedger, { tenantId }: Customer): Promise<Fold> =>
  program.folds.asOf(tenantId, threadMs(), soon());

const plainFold = async ({ log }: OpenLedger, { tenantId }: Customer): Promise<string> => {
  const events = await eventsOf(log.readStream(streams.tenant(tenantId)));
  const fold = emptyFold();
  for (const logged of events) foldEvent(fold, tenantEventOf(logged, fold.revision, tenantId, streams));
  return textOf(fold);
};

describe('a folded tenant', () => {
  it('is the same whether it was written here, written elsewhere, or read again', async () => {
    const folder = freshFolder();
    const [program, other] = [await openLedger(folder), await openLedger(folder)];
    const customer = await makeCustomer(program);
    await atHead(other, customer);
    for (let i = 0; i < 5; i += 1) await program.ledger.execute(rename(customer, `Name ${i}`));
    await program.ledger.execute(byOperator(customer.tenantId, changePlan(7)));
    const plain = await plainFold(program, customer);
    expect(await foldOf(program, customer)).toBe(plain);
    expect(textOf(await atHead(other, customer))).toBe(plain);
    expect(await foldOf(await openLedger(folder), customer)).toBe(plain);
  });

  it('has what was appended at the end of its first read or right after a write, as soon as it is looked at again', async () => {
    const folder = freshFolder();
    const other = await openLedger(folder);
    const customer = await makeCustomer(other);
    let isFirst = true;
    let since = 0;
    const program = await openLedger(folder, (log) => ({
      ...log,
      readStream: async function* (...given) {
        yield* log.readStream(...given);
        if (isFirst) await other.ledger.execute(rename(customer, 'Meanwhile'));
        isFirst = false;
      },
      append: async (...given) => {
        const appended = await log.append(...given);
        await other.ledger.execute(rename(customer, 'Right after it'));
        since = threadMs();
        return appended;
      },
    }));
    const { revision } = await atHead(program, customer);
    expect([revision, (await atHead(program, customer)).revision]).toEqual([2, 3]);
    await program.ledger.execute(rename(customer, 'Own'));
    expect(await program.folds.asOf(customer.tenantId, since, soon())).toMatchObject({ revision: 5 });
  });

  it('is read once and then cached', async () => {
    const folder = freshFolder();
    const program = await openLedger(folder);
    const customer = await makeCustomer(program);
    const again = await openLedger(folder);
    await foldOf(again, customer);
    const read = again.eventsRead();
    expect(read).toBe(3);
    for (let i = 0; i < 10; i += 1) await foldOf(again, customer);
    expect(again.eventsRead()).toBe(read);
  });

  it.each([
    ['one revision', 'revision = 7', 'revision 7'],
    ['several revisions', 'revision BETWEEN 3 AND 5', 'revisions 3 to 5'],
    ['the first revision', 'revision = 0', 'revision 0'],
  ])('allows no decision if its stream lacks %s', async (_, missing, named) => {
    const folder = freshFolder();
    const program = await openLedger(folder);
    const [customer, other] = [await makeCustomer(program), await makeCustomer(program)];
    await fillStream(program.log, customer, 10);
    const stream = streams.tenant(customer.tenantId);
    editLog(folder, `DELETE FROM events WHERE stream = '${stream}' AND ${missing}`);
    const again = await openLedger(folder);
    const reason = `Events are missing from the log: the stream ${stream} lacks ${named} before this event.`;
    await expect(again.ledger.execute(rename(customer, 'Later'))).rejects.toMatchObject({
      code: 'tenant_unreadable',
      more: { tenant_id: customer.tenantId, reason },
    });
    expect(again.folds.unreadable()).toMatchObject([{ reason }]);
    await again.ledger.execute(rename(other, 'Another'));
  });
});

describe('the cost of a write', () => {
  const readBy = async (program: OpenLedger, customer: Customer, writes: number): Promise<number> => {
    const before = program.eventsRead();
    for (let i = 0; i < writes; i += 1) await program.ledger.execute(rename(customer, `Name ${i}`));
    return program.eventsRead() - before;
  };

  it('does not grow with the history', async () => {
    const folder = freshFolder();
    const program = await openLedger(folder);
    const customer = await makeCustomer(program);
    expect(await readBy(program, customer, 200)).toBe(0);
    const other = await openLedger(folder);
    await fillStream(other.log, customer, 5_000);
    expect(await readBy(program, customer, 1)).toBe(5_000);
    expect(await readBy(program, customer, 200)).toBe(0);
  });
});

describe('a tenant that is not in memory', () => {
  const LARGE = 20_000;
  const SMALL = 10;

  const madeCustomers = async () => {
    const folder = freshFolder();
    const writer = await openLedger(folder);
    const customers = await Promise.all([1, 2, 3, 4].map(() => makeCustomer(writer)));
    const [first, second, third, small] = customers as [Customer, Customer, Customer, Customer];
    const large = [first, second, third];
    for (const customer of large) await fillStream(writer.log, customer, LARGE);
    await fillStream(writer.log, small, SMALL);
    await writer.close();
    return { folder, large, small };
  };
  let made: ReturnType<typeof madeCustomers>;
  beforeAll(async () => {
    made = madeCustomers();
    await made;
  }, 60_000);

  const key = ({ tenantId, digest }: Customer, deadline: number) => ({
    tenantId,
    digest,
    at: new Date().toISOString(),
    deadline,
  });

  it('is 503 while a long history is read, and after that its requests succeed', async () => {
    const { folder, large } = await made;
    const [customer] = large as [Customer];
    const program = await openLedger(folder);
    const briefly = () => key(customer, monotonicMs() + 50);
    for (const work of [
      () => program.ledger.identify(briefly(), 500),
      () => program.ledger.identify({ ...briefly(), isWrite: true }, Infinity),
      () => program.ledger.execute(rename(customer, 'Too soon', { deadline: monotonicMs() + 150 })),
    ])
      await expect(work()).rejects.toMatchObject({ code: 'log_unavailable' });
    // Nobody waits any more, and yet it is read to its end, once.
    await until(() => program.eventsRead() >= LARGE + 3);
    expect(await program.ledger.identify(key(customer, soon()), 500)).toMatchObject({
      keyId: customer.keyId,
    });
    expect(program.eventsRead()).toBe(LARGE + 3);
  });

  it('waits for no other: a small one is read while several large ones are', async () => {
    const { folder, large, small } = await made;
    const read = new Map<string, number>();
    let [under, most] = [0, 0];
    const around = (log: EventLog): EventLog => ({
      ...log,
      readStream: async function* (stream, after) {
        under += 1;
        most = Math.max(most, under);
        try {
          for await (const batch of log.readStream(stream, after)) {
            read.set(stream, (read.get(stream) ?? 0) + batch.length);
            yield batch;
          }
        } finally {
          under -= 1;
        }
      },
    });
    const program = await openLedger(folder, around);
    const reading = large.map((customer) => program.ledger.identify(key(customer, soon()), 500));
    await until(() => read.size >= 2);
    const before = [...read.values()].reduce((sum, count) => sum + count, 0);
    await program.ledger.identify(key(small, soon()), 500);
    const meanwhile = [...read.values()].reduce((sum, count) => sum + count, 0) - before;
    // Three are before it in the queue, at most two of them at a time and for 2,000 events each.
    expect(meanwhile).toBeLessThan(4 * 2_400);
    await Promise.all(reading);
    expect(most).toBe(2);
    expect([...read.values()].toSorted((a, b) => a - b)).toEqual([SMALL + 3, ...large.map(() => LARGE + 3)]);
  });
});

describe('a bounded cache', () => {
  it('evicts what was put first until the rest is cheap enough, and always keeps the last', () => {
    const cache = boundedCache<number>(10, (cost) => cost);
    const kept = () => ['a', 'b', 'c', 'd'].map(cache.get);
    for (const [key, cost] of Object.entries({ a: 4, b: 5 })) cache.put(key, cost);
    cache.put('a', 4);
    cache.put('c', 3);
    expect(kept()).toEqual([4, undefined, 3, undefined]);
    cache.delete('a');
    cache.put('b', 7);
    expect(kept()).toEqual([undefined, 7, 3, undefined]);
    cache.put('d', 12);
    expect(kept()).toEqual([undefined, undefined, undefined, 12]);
  });

  it('counts its values if nothing says what they cost', () => {
    const cache = boundedCache<number>(2);
    ['a', 'b', 'a', 'c'].forEach((key, i) => cache.put(key, i));
    expect(['a', 'b', 'c'].map(cache.get)).toEqual([2, undefined, 3]);
  });
});
