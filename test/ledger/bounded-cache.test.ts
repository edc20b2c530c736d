import * as fc from 'fast-check';
import { boundedCache } from '../../src/ledger/folds';
import { seed, seeded } from '../support/property';

const MAX = 10;

interface Costly {
  readonly cost: number;
}

/** The same with a plain list. */
const plainCache = () => {
  let list: (readonly [string, Costly])[] = [];
  const total = () => list.reduce((sum, [, { cost }]) => sum + cost, 0);
  const remove = (key: string): void => void (list = list.filter(([other]) => other !== key));
  return {
    get: (key: string) => list.find(([other]) => other === key)?.[1],
    put: (key: string, value: Costly): void => {
      remove(key);
      list.push([key, value]);
      while (total() > MAX && list.length > 1) list.shift();
    },
    delete: remove,
  };
};

describe('a bounded cache', () => {
  it(seeded('evicts what was put first until the rest is cheap enough, and always keeps the last'), () => {
    const keys = ['a', 'b', 'c', 'd', 'e'];
    const step = fc.record({
      key: fc.constantFrom(...keys),
      cost: fc.option(fc.nat(12), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const [cache, plain] = [boundedCache<Costly>(MAX, ({ cost }) => cost), plainCache()];
        for (const { key, cost } of steps) {
          for (const one of [cache, plain])
            if (cost === undefined) one.delete(key);
            else one.put(key, { cost });
          expect(keys.map(cache.get)).toEqual(keys.map(plain.get));
        }
      }),
      { seed },
    );
  });

  it('counts its values if nothing says what they cost', () => {
    const cache = boundedCache<number>(2);
    ['a', 'b', 'a', 'c'].forEach((key, i) => cache.put(key, i));
    expect(['a', 'b', 'c'].map(cache.get)).toEqual([2, undefined, 3]);
  });
});
