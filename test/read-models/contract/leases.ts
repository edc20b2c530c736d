import type { World } from './world';

/** Leases save work. */
export const leasesContract = (world: World): void => {
  const { again } = world;

  describe('a lease', () => {
    const LONG = 600_000;

    it('is taken, renewed, and refused to others', async () => {
      const other = await again();
      expect(await world.store.readModels.lease('work', 'holder one', LONG)).toBe(true);
      expect(await other.lease('work', 'holder two', LONG)).toBe(false);
      expect(await world.store.readModels.lease('work', 'holder one', LONG)).toBe(true);
      expect(await other.leaseHolder('work')).toBe('holder one');
    });

    it('is nobody’s before it is taken', async () => {
      expect(await world.store.readModels.leaseHolder('work')).toBeUndefined();
    });

    it('is taken by one of many at once', async () => {
      const stores = [world.store.readModels, await again()];
      const outcomes = await Promise.all(
        [0, 1, 2, 3].map((i) => stores[i % 2]!.lease('work', `holder h${i}`, LONG)),
      );
      expect(outcomes.filter(Boolean)).toHaveLength(1);
      expect(await stores[1]!.leaseHolder('work')).toBe(`holder h${outcomes.indexOf(true)}`);
    });

    it('ends by itself', async () => {
      await world.store.readModels.lease('work', 'holder one', 40);
      const began = performance.now();
      while (!(await world.store.readModels.lease('work', 'holder two', LONG)));
      expect(performance.now() - began).toBeGreaterThan(10);
      expect(await world.store.readModels.leaseHolder('work')).toBe('holder two');
      expect(await world.store.readModels.lease('work', 'holder one', LONG)).toBe(false);
    });

    it('has no holder once it has ended', async () => {
      await world.store.readModels.lease('work', 'holder one', 40);
      while ((await world.store.readModels.leaseHolder('work')) !== undefined)
        await new Promise((resolve) => setImmediate(resolve));
    });

    it('lives longer by being renewed', async () => {
      await world.store.readModels.lease('work', 'holder one', 1);
      await world.store.readModels.lease('work', 'holder one', LONG);
      const began = performance.now();
      while (performance.now() - began < 20)
        expect(await world.store.readModels.lease('work', 'holder two', LONG)).toBe(false);
    });

    it('is free when its holder releases it', async () => {
      await world.store.readModels.lease('work', 'holder one', LONG);
      await world.store.readModels.release('work', 'holder one');
      expect(await world.store.readModels.leaseHolder('work')).toBeUndefined();
      expect(await (await again()).lease('work', 'holder two', LONG)).toBe(true);
    });

    it('is not released by anybody else', async () => {
      await world.store.readModels.lease('work', 'holder one', LONG);
      await world.store.readModels.release('work', 'holder two');
      expect(await world.store.readModels.leaseHolder('work')).toBe('holder one');
    });

    it('carries a note of its holder, seen while it is held', async () => {
      const other = await again();
      expect(await other.leaseNote('work')).toBeUndefined();
      await world.store.readModels.lease('work', 'holder one', LONG, 'begun');
      expect(await other.leaseNote('work')).toBe('begun');
      await world.store.readModels.lease('work', 'holder one', LONG, 'half done');
      await other.lease('work', 'holder two', LONG, 'mine');
      expect(await other.leaseNote('work')).toBe('half done');
      expect(await other.leaseNote('play')).toBeUndefined();
      await world.store.readModels.release('work', 'holder one');
      expect(await other.leaseNote('work')).toBeUndefined();
    });

    it('is one for each thing', async () => {
      expect(await world.store.readModels.lease('work', 'holder one', LONG)).toBe(true);
      expect(await world.store.readModels.lease('play', 'holder two', LONG)).toBe(true);
      await world.store.readModels.release('work', 'holder two');
      await world.store.readModels.release('play', 'holder two');
      expect(await world.store.readModels.leaseHolder('work')).toBe('holder one');
      expect(await world.store.readModels.leaseHolder('play')).toBeUndefined();
    });
  });
};
