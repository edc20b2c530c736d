import type { ReadModels, ReadModelSet } from '../../../src/read-models/read-models';
import { LOG, ONE, advanceBy, at, commitOf, delay, progressAt, type Harness } from './storage';

/** Sets that nobody needs any more. The time that they stay is shortened here. */
export const describeRemoval = (harness: Harness): void => {
  const { again, filled, built } = harness;
  const impatient = (): Promise<ReadModels> => again({ graceMs: 1 });
  const idsIn = async (readModels: ReadModels): Promise<readonly string[]> =>
    (await readModels.list()).map(({ id }) => id).toSorted();
  const expectRemoved = async (set: ReadModelSet): Promise<void> => {
    await expect(set.control()).rejects.toMatchObject({ code: 'read_model_set_removed' });
    const before = new Map([[ONE, progressAt(1)]]);
    expect(await set.advance(before, async () => [await commitOf(set, ONE, 9)], at(9))).toBe('superseded');
    expect(await set.advance(new Map(), async () => [], at(9))).toBe('superseded');
    expect(await set.renew()).toBe(false);
  };

  describe('removing', () => {
    it('is refused for the live set, however old it is', async () => {
      const set = await filled();
      const readModels = await impatient();
      await delay(20);
      expect(await readModels.remove(set.id)).toBe(false);
      await advanceBy(set, 2);
    });

    it('is refused for a set that was superseded within the last minute', async () => {
      const former = await filled();
      const successor = await built(1);
      const readModels = await again({ graceMs: 900 });
      await delay(1_000);
      await harness.here.succeed(successor, former);
      expect(await readModels.remove(former.id)).toBe(false);
      expect(await harness.here.remove(former.id)).toBe(false);
      expect(await former.control()).toMatchObject({ next: successor.id });
      expect(await idsIn(harness.here)).toEqual([former.id, successor.id].toSorted());
    });

    it('removes a superseded set for every process once a minute has passed', async () => {
      const former = await filled();
      const there = await again();
      const seen = await there.live();
      const successor = await built(1);
      await harness.here.succeed(successor, former);
      const readModels = await impatient();
      await delay(20);
      expect(await readModels.remove(former.id)).toBe(true);
      for (const set of [former, seen?.set]) await expectRemoved(set as ReadModelSet);
      expect(await idsIn(there)).toEqual([successor.id]);
      for (const one of [there, harness.here, readModels])
        expect((await one.live())?.set.id).toBe(successor.id);
    });

    it('is refused for a build that was renewed within the last minute', async () => {
      const build = await harness.here.create(LOG);
      expect(await harness.here.remove(build.id)).toBe(false);
      const { renewedAt } = await build.control();
      await delay(20);
      expect(await build.renew()).toBe(true);
      expect((await build.control()).renewedAt > renewedAt).toBe(true);
      expect(await build.renew()).toBe(true);
      expect(await (await again()).remove(build.id)).toBe(false);
    });

    it('removes a build that its builder has left, which cannot go on with it', async () => {
      const live = await filled();
      const build = await built(5);
      const readModels = await impatient();
      await delay(20);
      expect(await readModels.remove(build.id)).toBe(true);
      expect(await harness.here.succeed(build, live)).toBe(false);
      await expectRemoved(build);
      expect(await live.control()).not.toHaveProperty('next');
      expect(await idsIn(harness.here)).toEqual([live.id]);
    });

    it('removes a build where there is no live set, even if it is gone, and it cannot become the first one', async () => {
      const build = await built(5);
      const readModels = await impatient();
      await delay(20);
      expect(await readModels.remove(build.id)).toBe(true);
      for (const one of [readModels, harness.here]) expect(await one.remove(build.id)).toBe(true);
      expect(await harness.here.succeed(build, undefined)).toBe(false);
      expect(await harness.here.live()).toBeUndefined();
    });

    it('keeps every set on the way to the live one', async () => {
      const former = await filled();
      const sets = [former];
      for (let i = 0; i < 3; i += 1) {
        const successor = await built(1);
        expect(await harness.here.succeed(successor, sets.at(-1))).toBe(true);
        sets.push(successor);
      }
      const readModels = await impatient();
      await delay(20);
      for (const { id } of sets) await readModels.remove(id);
      expect((await (await again()).live())?.set.id).toBe(sets.at(-1)?.id);
      expect((await harness.here.live())?.set.id).toBe(sets.at(-1)?.id);
    });

    it('either happens or loses against a switch that is made at the same time', async () => {
      const readModels = await impatient();
      let former = await filled();
      for (let i = 0; i < 10; i += 1) {
        const build = await built(1);
        await delay(5);
        const [isRemoved, hasSucceeded] = await Promise.all([
          readModels.remove(build.id),
          harness.here.succeed(build, former),
        ]);
        expect(isRemoved).toBe(!hasSucceeded);
        if (hasSucceeded) former = build;
        expect((await (await again()).live())?.set.id).toBe(former.id);
      }
    });

    it('removes the live set of another version only once that version is abandoned', async () => {
      const set = await filled();
      const other = await again({ version: 'two', graceMs: 1 });
      await delay(20);
      expect(await other.remove(set.id)).toBe(false);
      await other.abandon('one');
      await delay(20);
      expect(await other.remove(set.id)).toBe(true);
      expect(await other.list()).toEqual([]);
      expect(await harness.here.live()).toBeUndefined();
    });
  });
};
