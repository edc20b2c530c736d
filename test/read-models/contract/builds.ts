import { PARKED, type Build, type Generation, type Write } from '../../../src/read-models/read-models';
import { createAndBuild } from '../../support/generations';
import {
  at,
  before,
  change,
  collections,
  gone,
  id,
  LOG,
  note,
  ONE,
  put,
  stateOf,
  TWO,
  type Harness,
} from './harness';

/** A generation that is filled before it is queried. */
export const buildsContract = (harness: Harness): void => {
  const { again, openIn, createIn } = harness;
  const begin = (readModels = harness.store.readModels, name = id('notes')): Promise<Build> =>
    createAndBuild(readModels, name, collections, LOG);
  const onShelf = async (generation: Generation, shelf: string) =>
    (await generation.reader.find(ONE, 'notes', { index: 'by_shelf', equal: [shelf], limit: 99 })).map(
      (document) => document['place'],
    );
  const many = Array.from({ length: 200 }, (_, i) =>
    note(ONE, `n${i}`, { shelf: `${i % 10}`, place: 200 - i }),
  );
  const onThree = [7, 17, 27, 37, 47, 57, 67, 77, 87, 97].flatMap((place) => [place, place + 100]);
  const later = [note(ONE, 'later', { shelf: 'b', place: 9 }), put(TWO, 'counts', 'later', { count: 9 })];
  const commits = [before, change, later];
  const documentsOf = (writes: readonly Write[]) => writes.map(({ document }) => document);
  const parkedIn = async (build: Build) => (await build.scan(PARKED, 9)).map(({ tenantId }) => tenantId);

  /** The state after all commits, as in a generation that was never built. */
  const wholeState = async () => {
    const generation = await createIn(harness.store.readModels, id('whole'));
    for (const [n, writes] of commits.entries())
      expect(await generation.commit(n, at(n + 1), writes)).toBe(true);
    return stateOf(generation);
  };

  describe('a build', () => {
    it('starts empty and bound to its log', async () => {
      const build = await begin();
      expect(build.id).toEqual(id('notes'));
      expect(await build.control()).toEqual({ n: 0, log: LOG });
      expect(await build.load(before)).toEqual(before.map(() => undefined));
      expect(await parkedIn(build)).toEqual([]);
      expect((await harness.store.readModels.state()).generations).toEqual([
        { ...id('notes'), isLive: false },
      ]);
    });

    it('can be queried by its indexes once it is finished, and continues like any generation', async () => {
      const build = await begin();
      expect(await build.commit(0, at(1), many)).toBe(true);
      const generation = await build.finish();
      expect(await onShelf(generation, '3')).toEqual(onThree.toSorted((a, b) => a - b));
      expect(await generation.commit(1, at(2), [note(ONE, 'late', { shelf: '3', place: 1 })])).toBe(true);
      expect((await onShelf(generation, '3'))[0]).toBe(1);
      expect(await stateOf(await openIn(await again()))).toEqual(await stateOf(generation));
    });

    it.each(['here', 'elsewhere'])('is finished when it is opened %s', async (where) => {
      const build = await begin();
      await build.commit(0, at(1), many);
      await build.control();
      const opened = await openIn(where === 'here' ? harness.store.readModels : await again());
      expect(await onShelf(opened, '3')).toEqual(onThree.toSorted((a, b) => a - b));
    });

    it('reads its own commits at once, including changes and removals', async () => {
      const build = await begin();
      expect(await build.commit(0, at(1), before)).toBe(true);
      expect(await build.load([...before, ...later])).toEqual([
        ...documentsOf(before),
        ...later.map(() => undefined),
      ]);
      expect(await build.commit(1, at(2), change)).toBe(true);
      expect(await build.commit(2, at(3), later)).toBe(true);
      expect(await build.load([...change, ...later])).toEqual(documentsOf([...change, ...later]));
      expect(await build.control()).toMatchObject({ n: 3, to: at(3) });
      expect(await parkedIn(build)).toEqual([ONE]);
      expect(await stateOf(await build.finish())).toEqual(await wholeState());
    });

    it('accepts the removal of a document that does not exist', async () => {
      const build = await begin();
      expect(await build.commit(0, at(1), [gone(ONE, 'notes', 'never'), note(ONE, 'a', {})])).toBe(true);
      expect(await build.commit(1, at(2), [note(ONE, 'never', { text: 'now' })])).toBe(true);
      expect((await (await build.finish()).reader.scan('notes', 9)).map(({ key }) => key)).toEqual([
        'a',
        'never',
      ]);
    });

    it('refuses a commit whose number is not the current one', async () => {
      const build = await begin();
      expect(await build.commit(0, at(1), before)).toBe(true);
      for (const n of [0, 2, 99]) expect(await build.commit(n, at(9), later)).toBe(false);
      expect(await build.load(later)).toEqual(later.map(() => undefined));
    });

    it('does not disturb another build of the same generation', async () => {
      const build = await begin();
      const other = await begin(await again());
      expect(await build.commit(0, at(1), before)).toBe(true);
      await build.control();
      expect(await other.commit(0, at(1), later)).toBe(false);
      expect((await other.control()).n).toBe(1);
      expect(await other.load(before)).toEqual(documentsOf(before));
      expect(await other.commit(1, at(2), change)).toBe(true);
      await other.control();
      expect(await build.commit(1, at(2), later)).toBe(false);
      expect((await build.control()).n).toBe(2);
      expect(await build.load(change)).toEqual(documentsOf(change));
      expect(await build.commit(2, at(3), later)).toBe(true);
      expect(await stateOf(await build.finish())).toEqual(await wholeState());
    });

    it('continues although another one has finished it', async () => {
      const build = await begin();
      expect(await build.commit(0, at(1), before)).toBe(true);
      await build.control();
      await (await begin(await again())).finish();
      expect(await build.commit(1, at(2), change)).toBe(true);
      expect(await build.commit(2, at(3), later)).toBe(true);
      expect(await stateOf(await build.finish())).toEqual(await wholeState());
    });

    it('resumes where another process has left it', async () => {
      const left = await begin();
      expect(await left.commit(0, at(1), before)).toBe(true);
      await left.control();
      const build = await begin(await again());
      expect(await parkedIn(build)).toEqual([TWO]);
      expect(await build.commit(1, at(2), change)).toBe(true);
      expect(await build.commit(2, at(3), later)).toBe(true);
      expect(await stateOf(await build.finish())).toEqual(await wholeState());
    });

    it('keeps complete commits, wherever it fails', async () => {
      const expected = await wholeState();
      const buildFrom = async (build: Build, n: number): Promise<Generation> => {
        for (const [i, writes] of commits.entries())
          if (i >= n) expect(await build.commit(i, at(i + 1), writes)).toBe(true);
        return build.finish();
      };
      harness.store.failAt(0);
      await buildFrom(await begin(undefined, id('counted')), 0);
      const points = harness.store.reached();
      expect(points).toBeGreaterThanOrEqual(commits.length);
      for (let k = 1; k <= points; k += 1) {
        const build = await begin(undefined, id('notes', 1, `k${k}`));
        harness.store.failAt(k);
        await expect(buildFrom(build, 0)).rejects.toThrow();
        const generation = await buildFrom(build, (await build.control()).n);
        expect(await stateOf(generation)).toEqual(expected);
      }
    });
  });
};
