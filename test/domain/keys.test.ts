import * as fc from 'fast-check';
import { allKeys, changingKeys, findKey, keyBy, noKeys, type Keys, type Key } from '../../src/domain/keys';
import { seed, seeded } from '../support/property';

const digestOf = (n: number): string =>
  `${(n % 7).toString(16).padStart(2, '0')}${String(n).padStart(62, '0')}`;
const keyOf = (n: number, revoked: boolean): Key => ({
  id: `k${n}`,
  applicationId: `a${n % 3}`,
  revoked,
  created: { at: '2026-01-01T00:00:00.000Z' },
});
const entries = (keys: Keys): ReadonlyMap<string, Key> => new Map(allKeys(keys));

describe('the keys of a tenant', () => {
  it(seeded('equal a plain map, and no later change affects a version once returned'), () => {
    const change = fc.record({ n: fc.nat(30), revoked: fc.boolean(), look: fc.boolean() });
    const property = fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const changing = changingKeys(noKeys);
      const plain = new Map<string, Key>();
      const looks: { readonly keys: Keys; readonly expected: ReadonlyMap<string, Key> }[] = [];
      for (const { n, revoked, look } of changes) {
        changing.set(digestOf(n), keyOf(n, revoked));
        plain.set(digestOf(n), keyOf(n, revoked));
        expect(changing.get(digestOf(n))).toEqual(keyOf(n, revoked));
        if (look) looks.push({ keys: changing.keys(), expected: new Map(plain) });
      }
      looks.push({ keys: changing.keys(), expected: plain });
      for (const { keys, expected } of looks) {
        const all = [...expected];
        expect(entries(keys)).toEqual(expected);
        expect(keys.size).toBe(expected.size);
        expect(all.map(([digest]) => [digest, keyBy(keys, digest)])).toEqual(all);
        expect(all.map(([digest, key]) => [digest, findKey(keys, ({ id }) => id === key.id)])).toEqual(all);
      }
      expect(keyBy(changing.keys(), 'f'.repeat(64))).toBeUndefined();
    });
    fc.assert(property, { seed, numRuns: 200 });
  });

  it("that two versions extend do not see each other's additions", () => {
    const first = changingKeys(noKeys);
    first.set(digestOf(1), keyOf(1, false));
    const common = first.keys();
    const [one, other] = [changingKeys(common), changingKeys(common)];
    one.set(digestOf(8), keyOf(8, false));
    other.set(digestOf(1), keyOf(1, true));
    expect(entries(common)).toEqual(new Map([[digestOf(1), keyOf(1, false)]]));
    expect(keyBy(one.keys(), digestOf(1))?.revoked).toBe(false);
    expect(keyBy(other.keys(), digestOf(8))).toBeUndefined();
  });
});
