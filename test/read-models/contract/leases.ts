import type { Harness } from './harness';

/** Leases save work; correctness does not depend on them. */
export const leasesContract = (harness: Harness): void => {
  const { again } = harness;
  const take = async (by: string, what = ['work'], note?: string, models = harness.store.readModels) => [
    ...(await models.lease(what, by, note)),
  ];
  const held = async () => Object.fromEntries((await (await again()).state()).leases);

  describe('a lease', () => {
    it('can be taken and renewed, and is refused to others', async () => {
      const other = await again();
      expect(await held()).toEqual({});
      expect(await take('holder one')).toEqual(['work']);
      expect(await take('holder two', ['work'], '', other)).toEqual([]);
      expect(await take('holder one')).toEqual(['work']);
      expect(await held()).toEqual({ work: { holder: 'holder one', note: '' } });
    });

    it('is taken by only one of many at once', async () => {
      const stores = [harness.store.readModels, await again()];
      const outcomes = await Promise.all(
        [0, 1, 2, 3].map((i) => take(`holder h${i}`, ['work'], '', stores[i % 2])),
      );
      expect(outcomes.flat()).toEqual(['work']);
      const winner = outcomes.findIndex(({ length }) => length === 1);
      expect(await held()).toMatchObject({ work: { holder: `holder h${winner}` } });
    });

    it('is taken together with others, as far as they are free', async () => {
      expect(await take('holder one', ['work', 'play'])).toEqual(['work', 'play']);
      await harness.store.readModels.release(['play'], 'holder one');
      expect(await take('holder two', ['work', 'play', 'rest'])).toEqual(['play', 'rest']);
      expect(await held()).toMatchObject({
        work: { holder: 'holder one' },
        play: { holder: 'holder two' },
        rest: { holder: 'holder two' },
      });
      await harness.store.readModels.release(['work', 'play', 'rest'], 'holder two');
      expect(Object.keys(await held())).toEqual(['work']);
    });

    it('expires on its own, and lasts longer if it is renewed', async () => {
      const { readModels, later } = harness.store;
      await take('holder one', ['work', 'play']);
      await later(0.6 * readModels.leaseMs);
      expect(await take('holder one', ['work'])).toEqual(['work']);
      await later(0.6 * readModels.leaseMs);
      expect([...(await readModels.state()).leases.keys()]).toEqual(['work']);
      expect(await take('holder two', ['work', 'play'])).toEqual(['play']);
      await later(1.1 * readModels.leaseMs);
      expect((await readModels.state()).leases.size).toBe(0);
      expect(await take('holder two', ['work'])).toEqual(['work']);
    }, 60_000);

    it('counts as expired if it lasts longer than any: the clock was set back since', async () => {
      const { readModels, earlier } = harness.store;
      await take('holder one');
      await earlier(3_600_000);
      expect((await readModels.state()).leases.size).toBe(0);
      expect(await take('holder two')).toEqual(['work']);
    });

    it('is free when its holder releases it, and only then', async () => {
      const { readModels } = harness.store;
      await take('holder one');
      await readModels.release(['work'], 'holder two');
      expect(Object.keys(await held())).toEqual(['work']);
      await readModels.release(['work'], 'holder one');
      expect(await held()).toEqual({});
      expect(await take('holder two', ['work'], '', await again())).toEqual(['work']);
      expect(await take('holder one')).toEqual([]);
    });

    it('carries a note from its holder, visible while it is held', async () => {
      await take('holder one', ['work'], 'begun');
      expect(await held()).toMatchObject({ work: { note: 'begun' } });
      await take('holder one', ['work'], 'half {"$done": 1}');
      await take('holder two', ['work'], 'mine');
      expect(await held()).toMatchObject({ work: { note: 'half {"$done": 1}' } });
    });
  });
};
