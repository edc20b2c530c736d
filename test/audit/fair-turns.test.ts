import { fairTurns } from '../../src/audit/fair-turns';

describe('fair turns', () => {
  it('are shared by tenants, however many readers each of them has', async () => {
    const turns = fairTurns();
    const order: string[] = [];
    const reader = async (tenantId: string, slices: number): Promise<void> => {
      for (let slice = 0; slice < slices; slice += 1) {
        await turns(tenantId);
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
    const turns = fairTurns();
    let others = 0;
    let isOver = false;
    const other = (): void => {
      others += 1;
      if (!isOver) setImmediate(other);
    };
    setImmediate(other);
    const seen: number[] = [];
    const reader = async (tenantId: string): Promise<void> => {
      await turns(tenantId);
      seen.push(others);
    };
    await Promise.all(['a', 'a', 'b', 'c'].map(reader));
    isOver = true;
    expect(new Set(seen).size).toBe(4);
  });
});
