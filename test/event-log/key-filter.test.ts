import { randomUUID } from 'node:crypto';
import { keyFilter } from '../../src/event-log/key-filter';

const KEYS = 20_000;

/** As full as intended: 16 bits per key. */
const words = (KEYS * 16) / 32;

describe('the key filter', () => {
  it.each<[string, (i: number) => string]>([
    ['random keys', () => randomUUID()],
    ['sequential keys', (i) => `token:entity-${i}`],
  ])('never denies what was added and rarely claims what was not: %s', (_, keyOf) => {
    const filter = keyFilter(2 ** Math.ceil(Math.log2(words)));
    const tenantId = randomUUID();
    const all = Array.from({ length: 2 * KEYS }, (__, i) => ({
      tenantId,
      collection: 'rows',
      key: keyOf(i),
    }));
    const [added, others] = [all.slice(0, KEYS), all.slice(KEYS)];
    const claimed = added.filter((key) => !filter.add(key));
    expect(added.filter((key) => !filter.mayHave(key) || filter.add(key))).toEqual([]);
    expect(claimed.length).toBeLessThan(KEYS / 50);
    expect(others.filter((key) => filter.mayHave(key)).length).toBeLessThan(KEYS / 50);
  });

  it('has hardly any false positives with 64 bits per key, and no false negatives with too few', () => {
    const keys = Array.from({ length: 100_000 }, () => ({
      tenantId: 'a',
      collection: '',
      key: randomUUID(),
    }));
    const [large, small] = [keyFilter(2 ** 18), keyFilter(2 ** 10)];
    expect(keys.filter((key) => !large.add(key)).length).toBeLessThan(3);
    for (const key of keys) small.add(key);
    expect(keys.filter((key) => small.add(key) || !small.mayHave(key))).toEqual([]);
  });

  it('distinguishes tenants and collections', () => {
    const filter = keyFilter(1_024);
    const key = { tenantId: 'a', collection: 'rows', key: '1' };
    expect(filter.mayHave(key)).toBe(false);
    expect(filter.add(key)).toBe(true);
    expect(filter.mayHave(key)).toBe(true);
    for (const other of [{ tenantId: 'b' }, { collection: 'heads' }, { key: '2' }])
      expect(filter.mayHave({ ...key, ...other })).toBe(false);
  });
});
