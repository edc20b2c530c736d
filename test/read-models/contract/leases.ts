import { until } from '../../support/waiting';
import type { Harness } from './harness';

/** Leases save work; correctness does not depend on them. */
export const leasesContract = (harness: Harness): void => {
  const { again } = harness;

  describe('a lease', () => {
    const LONG = 600_000;

    it('can be taken and renewed, and is refused to others', async () => {
      const other = await again();
      expect(await harness.store.readModels.lease('work', 'holder one', LONG)).toBe(true);
      expect(await other.lease('work', 'holder two', LONG)).toBe(false);
      expect(await harness.store.readModels.lease('work', 'holder one', LONG)).toBe(true);
      expect(await other.leaseHolder('work')).toBe('holder one');
    });

    it('is free when it is released, and its former holder has to ask for it again', async () => {
      const [one, other] = [harness.store.readModels, await again()];
      expect(await one.lease('work', 'holder one', 2_000)).toBe(true);
      await one.release('work', 'holder one');
      expect(await other.lease('work', 'holder two', LONG)).toBe(true);
      expect(await one.lease('work', 'holder one', 2_000)).toBe(false);
      expect(await other.leaseHolder('work')).toBe('holder two');
    });

    it('has no holder before it is taken', async () => {
      expect(await harness.store.readModels.leaseHolder('work')).toBeUndefined();
    });

    it('is taken by only one of many at once', async () => {
      const stores = [harness.store.readModels, await again()];
      const outcomes = await Promise.all(
        [0, 1, 2, 3].map((i) => stores[i % 2]!.lease('work', `holder h${i}`, LONG)),
      );
      expect(outcomes.filter(Boolean)).toHaveLength(1);
      expect(await stores[1]!.leaseHolder('work')).toBe(`holder h${outcomes.indexOf(true)}`);
    });

    it('expires on its own', async () => {
      await harness.store.readModels.lease('work', 'holder one', 40);
      const startedAt = performance.now();
      while (!(await harness.store.readModels.lease('work', 'holder two', LONG)));
      expect(performance.now() - startedAt).toBeGreaterThan(10);
      expect(await harness.store.readModels.leaseHolder('work')).toBe('holder two');
      expect(await harness.store.readModels.lease('work', 'holder one', LONG)).toBe(false);
    });

    it('has no holder once it has expired', async () => {
      await harness.store.readModels.lease('work', 'holder one', 40);
      while ((await harness.store.readModels.leaseHolder('work')) !== undefined)
        await new Promise((resolve) => setImmediate(resolve));
    });

    it('lasts longer if it is renewed', async () => {
      await harness.store.readModels.lease('work', 'holder one', 1);
      await harness.store.readModels.lease('work', 'holder one', LONG);
      const startedAt = performance.now();
      while (performance.now() - startedAt < 20)
        expect(await harness.store.readModels.lease('work', 'holder two', LONG)).toBe(false);
    });

    it('is free when its holder releases it', async () => {
      await harness.store.readModels.lease('work', 'holder one', LONG);
      await harness.store.readModels.release('work', 'holder one');
      expect(await harness.store.readModels.leaseHolder('work')).toBeUndefined();
      expect(await (await again()).lease('work', 'holder two', LONG)).toBe(true);
    });

    it('is free when its holder releases it while renewing it', async () => {
      const [{ readModels }, other] = [harness.store, await again()];
      for (let round = 0; round < 10; round += 1) {
        await until(() => readModels.lease('work', 'holder one', LONG, 'begun'));
        const renewal = readModels.lease('work', 'holder one', LONG, 'half done');
        await readModels.release('work', 'holder one');
        await renewal;
        expect(await readModels.leaseHolder('work')).toBeUndefined();
        await until(() => other.lease('work', 'holder two', LONG));
        expect(await readModels.lease('work', 'holder one', LONG, 'half done')).toBe(false);
        await other.release('work', 'holder two');
      }
    });

    it('cannot be released by anybody but its holder', async () => {
      await harness.store.readModels.lease('work', 'holder one', LONG);
      await harness.store.readModels.release('work', 'holder two');
      expect(await harness.store.readModels.leaseHolder('work')).toBe('holder one');
    });

    it('carries a note from its holder, visible while it is held', async () => {
      const other = await again();
      expect(await other.leaseNote('work')).toBeUndefined();
      await harness.store.readModels.lease('work', 'holder one', LONG, 'begun');
      expect(await other.leaseNote('work')).toBe('begun');
      await harness.store.readModels.lease('work', 'holder one', LONG, 'half done');
      await other.lease('work', 'holder two', LONG, 'mine');
      expect(await other.leaseNote('work')).toBe('half done');
      expect(await other.leaseNote('play')).toBeUndefined();
      await harness.store.readModels.release('work', 'holder one');
      expect(await other.leaseNote('work')).toBeUndefined();
    });

    it('is separate for each name', async () => {
      expect(await harness.store.readModels.lease('work', 'holder one', LONG)).toBe(true);
      expect(await harness.store.readModels.lease('play', 'holder two', LONG)).toBe(true);
      await harness.store.readModels.release('work', 'holder two');
      await harness.store.readModels.release('play', 'holder two');
      expect(await harness.store.readModels.leaseHolder('work')).toBe('holder one');
      expect(await harness.store.readModels.leaseHolder('play')).toBeUndefined();
    });
  });
};
