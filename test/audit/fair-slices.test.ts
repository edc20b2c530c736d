import { randomUUID } from 'node:crypto';
import { fairSlices, slicedLog } from '../../src/audit/fair-slices';
import type { LedgerLog } from '../../src/event-log/streams';
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

  describe('of a read', () => {
    let ledgerLog: LedgerLog;
    const tenantId = randomUUID();
    const events = someEvents(300);
    beforeAll(async () => {
      ledgerLog = await openLogIn(freshFolder());
      await ledgerLog.log.append(ledgerLog.streams.activity(tenantId), events, 'no_stream');
    });
    afterAll(() => ledgerLog.log.close());

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
