import { randomUUID } from 'node:crypto';
import { documentCache, write } from '../../src/projecting/document-cache';
import type { DocumentKey, Generation } from '../../src/read-models/read-models';

/** A store that records its reads; the value of a document is its key unless it was written. */
const store = () => {
  const asked: string[] = [];
  const load: Generation['load'] = async (keys: readonly DocumentKey[]) => {
    asked.push(...keys.map(({ key }) => key));
    return keys.map(({ key }) => ({ value: `stored ${key}` }));
  };
  return { asked, generation: { load } as Generation };
};

const TENANT = randomUUID();

describe('the document cache', () => {
  it('gives what the batch before has written, although the store does not have it yet', async () => {
    const { generation, asked } = store();
    const cache = documentCache(generation);
    cache.begin();
    write(cache.slot(TENANT, 'rows', 'a'), { value: 1 });
    expect(cache.writes()).toHaveLength(1);
    cache.begin();
    const again = cache.slot(TENANT, 'rows', 'a');
    await cache.load();
    expect(again.document).toEqual({ value: 1 });
    expect(asked).toEqual([]);
    expect(cache.writes()).toEqual([]);
  });

  it('forgets what was used long ago, but never what the last batch has touched', async () => {
    const { generation, asked } = store();
    const cache = documentCache(generation, 10);
    for (let batch = 0; batch < 5; batch += 1) {
      cache.begin();
      const before = batch === 0 ? [] : Array.from({ length: 8 }, (_, i) => `${batch - 1} ${i}`);
      const slots = before.map((key) => cache.slot(TENANT, 'rows', key));
      await cache.load();
      expect(slots.map(({ document }) => document)).toEqual(before.map((key) => ({ value: key })));
      for (let i = 0; i < 8; i += 1) {
        const slot = cache.slot(TENANT, 'rows', `${batch} ${i}`);
        write(slot, { value: slot.key });
      }
      cache.writes();
    }
    expect(asked).toEqual([]);
    cache.begin();
    const old = cache.slot(TENANT, 'rows', '0 0');
    await cache.load();
    expect(asked).toEqual(['0 0']);
    expect(old.document).toEqual({ value: 'stored 0 0' });
  });
});
