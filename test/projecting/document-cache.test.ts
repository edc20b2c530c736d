import { randomUUID } from 'node:crypto';
import { documentCache } from '../../src/projecting/document-cache';
import type { DocumentKey, ReadModelSet } from '../../src/read-models/read-models';

/** A store that records its reads; the value of a document is its key unless it was written. */
const store = () => {
  const asked: string[] = [];
  const load: ReadModelSet['load'] = async (keys: readonly DocumentKey[]) => {
    asked.push(...keys.map(({ key }) => key));
    return keys.map(({ key }) => ({ value: `stored ${key}` }));
  };
  return { asked, set: { load } };
};

const TENANT = randomUUID();

describe('the document cache', () => {
  it('returns what the previous batch wrote, even if the store does not have it yet', async () => {
    const { set, asked } = store();
    const cache = documentCache(set);
    cache.begin();
    cache.write(cache.slot({ tenantId: TENANT, collection: 'rows', key: 'a' }), { value: 1 });
    expect(cache.writes()).toHaveLength(1);
    cache.begin();
    const again = cache.slot({ tenantId: TENANT, collection: 'rows', key: 'a' });
    await cache.load();
    expect(again.document).toEqual({ value: 1 });
    expect(asked).toEqual([]);
    expect(cache.writes()).toEqual([]);
  });

  it('begins the next batch with none, once it is large', async () => {
    const { set, asked } = store();
    const cache = documentCache(set, 2);
    for (const keys of [['a', 'b'], ['a', 'c'], ['a']]) {
      cache.begin();
      const slots = keys.map((key) => cache.slot({ tenantId: TENANT, collection: 'rows', key: key }));
      await cache.load();
      expect(slots.map(({ document }) => document)).toEqual(keys.map((key) => ({ value: `stored ${key}` })));
    }
    expect(asked).toEqual(['a', 'b', 'c', 'a']);
  });

  it('gives out a document once, however many events have changed it', async () => {
    const { set } = store();
    const cache = documentCache(set);
    cache.begin();
    const [one, two] = [0, 1].map(() => cache.slot({ tenantId: TENANT, collection: 'rows', key: 'a' }));
    expect(one).toBe(two);
    for (const slot of [one, two]) cache.write(slot!, { value: 2 });
    expect(cache.writes()).toMatchObject([{ tenantId: TENANT, key: 'a', document: { value: 2 } }]);
  });
});
