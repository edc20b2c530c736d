import { randomUUID } from 'node:crypto';
import { fairSlices, slicedLog } from '../../src/audit/slices';
import type { LedgerLog } from '../../src/event-log/ledger-log';
import { someEvents } from '../support/events';
import { freshFolder } from '../support/folders';
import { openLogIn } from '../support/profile';

const block = (ms: number): void => {
  for (const end = performance.now() + ms; performance.now() < end;);
};

describe('slices of the thread', () => {
  it('are shared by tenants, however many readers each of them has', async () => {
    const slices = fairSlices();
    const order: string[] = [];
    const reader = async (tenantId: string, count: number): Promise<void> => {
      for (let slice = 0; slice < count; slice += 1) {
        await slices(tenantId);
        order.push(tenantId);
      }
    };
    const many = Array.from({ length: 20 }, () => reader('many', 20));
    await Promise.all([...many, reader('one', 20), reader('other', 20)]);
    const last = Math.max(order.lastIndexOf('one'), order.lastIndexOf('other'));
    expect(order.slice(0, last + 1).filter((tenant) => tenant === 'many').length).toBeLessThanOrEqual(21);
    expect(order).toHaveLength(440);
  });

  it('come one at a time, and let the thread do other work in between', async () => {
    const slices = fairSlices();
    let others = 0;
    let isOver = false;
    const other = (): void => {
      others += 1;
      if (!isOver) setImmediate(other);
    };
    setImmediate(other);
    const seen: number[] = [];
    const reader = async (tenantId: string): Promise<void> => {
      await slices(tenantId);
      seen.push(others);
    };
    await Promise.all(['a', 'a', 'b', 'c'].map(reader));
    isOver = true;
    expect(new Set(seen).size).toBe(4);
  });

  it('are over after a few milliseconds, and when the next one begins', async () => {
    const slices = fairSlices();
    const first = await slices('a');
    expect(first.isOver()).toBe(false);
    const second = await slices('a');
    expect([first.isOver(), second.isOver()]).toEqual([true, false]);
    block(5);
    expect(second.isOver()).toBe(true);
  });

  describe('of a read', () => {
    let ledgerLog: LedgerLog;
    const tenantId = randomUUID();
    const events = someEvents(300);
    beforeAll(async () => {
      ledgerLog = await openLogIn(freshFolder());
      await ledgerLog.log.append(ledgerLog.streams.activity(tenantId), events, 'no_stream');
    });
    afterAll(() => ledgerLog.log.close());

    it.each(['readStream', 'readTenant'] as const)('give %s everything, in order', async (name) => {
      const slices = fairSlices();
      const { log, streams } = slicedLog(ledgerLog, () => slices(tenantId));
      const of = { readStream: streams.activity(tenantId), readTenant: tenantId };
      const ids: string[] = [];
      for await (const batch of log[name](of[name])) ids.push(...batch.map(({ id }) => id));
      expect(ids).toEqual(events.map(({ id }) => id));
    });

    it('end while each event takes long', async () => {
      const slices = fairSlices();
      let [turns, isOver] = [0, false];
      const look = (): void => {
        turns += 1;
        if (!isOver) setImmediate(look);
      };
      const { log } = slicedLog(ledgerLog, () => slices(tenantId));
      setImmediate(look);
      for await (const batch of log.readTenant(tenantId)) block(batch.length / 4);
      isOver = true;
      expect(turns).toBeGreaterThan(events.length / 10);
    });
  });
});
