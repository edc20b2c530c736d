import { boundedCache } from '../../src/ledger/folds';

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
