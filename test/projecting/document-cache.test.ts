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
  it('returns what the previous batch wrote, even if the store does not have it yet', async () => {
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

  it('evicts documents touched by one event before those touched by several, once it is large', async () => {
    const { generation, asked } = store();
    const cache = documentCache(generation, 10);
    for (let batch = 0; batch < 5; batch += 1) {
      cache.begin();
      const shared = [0, 1].map(() => cache.slot(TENANT, 'heads', 'shared'));
      await cache.load();
      expect(shared[1]).toBe(shared[0]);
      expect(shared[0]?.document).toEqual({ value: batch === 0 ? 'stored shared' : batch });
      for (const slot of shared) write(slot, { value: batch + 1 });
      for (let i = 0; i < 10; i += 1) write(cache.slot(TENANT, 'rows', `${batch} ${i}`), { value: batch });
      expect(cache.writes()).toHaveLength(11);
    }
    expect(asked).toEqual(['shared']);
    cache.begin();
    const old = cache.slot(TENANT, 'rows', '4 0');
    await cache.load();
    expect(asked).toEqual(['shared', '4 0']);
    expect(old.document).toEqual({ value: 'stored 4 0' });
  });

  it('evicts documents that are no longer shared', async () => {
    const { generation, asked } = store();
    const cache = documentCache(generation, 0);
    cache.begin();
    for (const _ of [1, 2]) cache.slot(TENANT, 'heads', 'once shared');
    await cache.load();
    for (let batch = 0; batch < 2; batch += 1) {
      cache.begin();
      cache.slot(TENANT, 'rows', String(batch));
      await cache.load();
    }
    cache.begin();
    cache.slot(TENANT, 'heads', 'once shared');
    await cache.load();
    expect(asked).toEqual(['once shared', '0', '1', 'once shared']);
  });
});
