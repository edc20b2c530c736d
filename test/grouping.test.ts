import { groupedBy } from '../src/grouping';

describe('grouping', () => {
  it('keeps the order of the items, and of the first item of each group', () => {
    const groups = groupedBy(['b1', 'a1', 'b2', 'c1', 'a2'], ([first = '']) => first);
    expect([...groups]).toEqual([
      ['b', ['b1', 'b2']],
      ['a', ['a1', 'a2']],
      ['c', ['c1']],
    ]);
  });

  it('of nothing gives no groups', () => {
    expect(groupedBy(new Map<string, string>().values(), (item) => item).size).toBe(0);
  });
});
