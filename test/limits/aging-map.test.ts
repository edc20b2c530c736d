import * as fc from 'fast-check';
import { agingMap } from '../../src/limits/aging-map';
import { seed, seeded } from '../support/property';

describe('an aging map', () => {
  it(seeded('returns its oldest key, like a plain list'), () => {
    const step = fc.tuple(
      fc.constantFrom('put', 'put', 'again', 'delete', 'drop', 'drop', 'look'),
      fc.integer({ min: 0, max: 12 }).map(String),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const map = agingMap<string>();
        let list: string[] = [];
        for (const [act, key] of steps) {
          const before = list;
          const without = list.filter((other) => other !== key);
          if (act === 'put') list = list.includes(key) ? list : [...list, key];
          if (act === 'again') list = [...without, key];
          if (act === 'delete') list = without;
          if (act === 'drop') list = list.slice(1);
          if (act === 'again' || act === 'delete') expect(map.delete(key)).toBe(before.includes(key));
          if (act === 'put' || act === 'again') map.set(key, act);
          if (act === 'drop' && before.length > 0) expect(map.delete(map.oldest()!)).toBe(true);
          if (act === 'look' || act === 'drop') expect(map.oldest()).toBe(list[0]);
          expect(map.size).toBe(list.length);
        }
      }),
      { seed, numRuns: 1_000 },
    );
  });
});
