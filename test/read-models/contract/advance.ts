import {
  PARKED,
  STREAMS,
  type DocumentKey,
  type ReadModels,
  type ReadModelSet,
} from '../../../src/read-models/read-models';
import { ONE, TWO, LOG, advanceBy, at, contentsOf, deletion, note, put, type Harness } from './storage';

const before = [
  note(ONE, 'kept', { shelf: 'a', place: 1 }),
  note(ONE, 'changed', { shelf: 'a', place: 2, text: 'old' }),
  note(ONE, 'removed', { shelf: 'a', place: 3 }),
  put(ONE, 'counts', 'all', { count: 3 }),
  put(TWO, 'counts', 'removed', { count: 1 }),
  put(TWO, PARKED, 'tenant', { reason: 'old' }),
  put(ONE, STREAMS, 'tenant', { revision: 1 }),
];
const change = [
  note(ONE, 'changed', { shelf: 'b', place: 2, text: 'new' }),
  note(ONE, 'added', { shelf: 'b', place: 1 }),
  deletion(ONE, 'notes', 'removed'),
  deletion(TWO, 'counts', 'removed'),
  put(ONE, PARKED, 'tenant', { reason: 'new' }),
  deletion(TWO, PARKED, 'tenant'),
  put(TWO, STREAMS, 'activity', { revision: 0 }),
];

const COUNT = [{ tenantId: ONE, collection: 'counts', key: 'n' }];

/** Adds one to a number, again until it is committed. */
const increase = async (set: ReadModelSet): Promise<void> => {
  for (;;) {
    const outcome = await set.advance(async ({ n }) => {
      const [found] = await set.load(COUNT);
      const count = Number(found?.['count'] ?? 0) + 1;
      return { to: at(n + 1), writes: [put(ONE, 'counts', 'n', { count })], parked: 0 };
    });
    if (outcome === 'done') return;
    expect(outcome).toBe('overtaken');
  }
};

/** Commits: all of a change or nothing, on the newest state. */
export const describeAdvance = (harness: Harness): void => {
  const { again, filled } = harness;
  const liveIn = async (readModels: ReadModels): Promise<ReadModelSet> => {
    const live = await readModels.live();
    if (live === undefined) throw new Error('There is no live set.');
    return live.set;
  };

  describe('advancing', () => {
    it('writes all documents and moves the control state', async () => {
      const set = await filled(...before);
      expect(await set.advance(async () => ({ to: at(7), writes: change, parked: 1 }))).toBe('done');
      expect(await set.control()).toMatchObject({ n: 2, to: at(7), parked: 1, log: LOG });
      const keys = [...before, ...change];
      const idOf = ({ tenantId, collection, key }: DocumentKey) => `${tenantId} ${collection} ${key}`;
      const after = new Map(keys.map((write) => [idOf(write), write.document]));
      expect(await set.load(keys)).toEqual(keys.map((key) => after.get(idOf(key))));
      expect((await contentsOf(set)).documents).toHaveLength(
        [...after.values()].filter((document) => document !== undefined).length,
      );
    });

    it('gives the work the newest control state and documents', async () => {
      const set = await filled(...before);
      const there = await liveIn(await again());
      await advanceBy(there, 2, ...change);
      let seen: unknown;
      await set.advance(async (now) => {
        seen = [now.n, now.to, await set.load([{ tenantId: ONE, collection: 'notes', key: 'changed' }])];
        return undefined;
      });
      expect(seen).toEqual([2, at(2), [{ shelf: 'b', place: 2, text: 'new' }]]);
    });

    it('without a result writes nothing', async () => {
      const set = await filled(...before);
      const contents = await contentsOf(set);
      expect(await set.advance(async () => undefined)).toBe('done');
      expect(await contentsOf(set)).toEqual(contents);
    });

    it('without a position counts, and leaves the position where it was', async () => {
      const set = await filled(...before);
      await advanceBy(set, undefined, deletion(TWO, PARKED, 'tenant'));
      expect(await set.control()).toMatchObject({ n: 2, to: at(1) });
    });

    it('writes nothing if the work fails, and fails as the work did', async () => {
      const set = await filled(...before);
      const contents = await contentsOf(set);
      const failure = new Error('a reducer failed');
      await expect(
        set.advance(async () => {
          await set.load(COUNT);
          throw failure;
        }),
      ).rejects.toBe(failure);
      expect(await contentsOf(set)).toEqual(contents);
      await advanceBy(set, 2, ...change);
    });

    it('writes nothing at all if one collection is unknown', async () => {
      const set = await filled(...before);
      const contents = await contentsOf(set);
      const writes = [...change, put(ONE, 'nowhere', 'a', {})];
      await expect(set.advance(async () => ({ to: at(2), writes, parked: 0 }))).rejects.toThrow(/nowhere/);
      expect(await contentsOf(set)).toEqual(contents);
      expect(await contentsOf(await liveIn(await again()))).toEqual(contents);
    });

    it('that failed gives no tenant the documents of another', async () => {
      const [three, four] = ['3', '4'].map((digit) => ONE.replaceAll('1', digit)) as [string, string];
      const set = await filled();
      const writes = [note(three, 'a', {}), note(three, 'b', {}), put(three, 'nowhere', 'a', {})];
      await expect(set.advance(async () => ({ writes, parked: 0 }))).rejects.toThrow();
      await advanceBy(set, 2, note(four, 'a', { of: 'four' }));
      await advanceBy(set, 3, note(three, 'b', { of: 'three' }));
      expect(await set.get(four, 'notes', 'b')).toBeUndefined();
      expect(await set.get(three, 'notes', 'a')).toBeUndefined();
      expect(await set.get(three, 'notes', 'b')).toEqual({ of: 'three' });
    });

    it('writes thousands of documents at once', async () => {
      const set = await filled();
      const many = Array.from({ length: 3_000 }, (_, i) => note(ONE, `n${i}`, { i, shelf: 'x'.repeat(50) }));
      await advanceBy(set, 2, ...many);
      expect(await set.find(ONE, 'notes', { limit: 10_000 })).toHaveLength(3_000);
      expect(await set.load(many)).toEqual(many.map(({ document }) => document));
    });

    it('is visible to every process when it resolves', async () => {
      const here = await filled();
      const readModels = await again();
      const there = await liveIn(readModels);
      for (let i = 0; i < 20; i += 1) {
        const document = { shelf: 's', place: i };
        await advanceBy(i % 2 === 0 ? here : there, i + 2, note(ONE, 'a', document));
        expect((await readModels.live())?.control).toMatchObject({ n: i + 2, to: at(i + 2) });
        for (const set of [here, there]) {
          expect(await set.get(ONE, 'notes', 'a')).toEqual(document);
          expect(await set.load([note(ONE, 'a', {})])).toEqual([document]);
          const query = { index: 'by_shelf', equal: ['s'], limit: 9 };
          expect(await set.find(ONE, 'notes', query)).toEqual([document]);
          expect(await set.control()).toMatchObject({ n: i + 2, to: at(i + 2) });
        }
      }
    });

    it('loses and doubles nothing when several processes do it at once', async () => {
      const here = await filled();
      const sets = [here, await liveIn(await again()), await liveIn(await again())];
      await Promise.all(
        sets.flatMap((set) =>
          [1, 2].map(async () => {
            for (let i = 0; i < 5; i += 1) await increase(set);
          }),
        ),
      );
      expect(await here.get(ONE, 'counts', 'n')).toEqual({ count: 30 });
      expect(await here.control()).toMatchObject({ n: 31, to: at(31) });
    });

    it('of a build is as any other, and what it wrote is there after it is finished', async () => {
      const build = await harness.here.create(LOG);
      await advanceBy(build, 1, ...before);
      await advanceBy(build, 2, ...change);
      await build.finish();
      const whole = await filled(...before);
      await advanceBy(whole, 2, ...change);
      expect((await contentsOf(build)).documents).toEqual((await contentsOf(whole)).documents);
      await advanceBy(build, 3, note(ONE, 'late', { shelf: 'b', place: 0 }));
      const places = (await build.find(ONE, 'notes', { index: 'by_shelf', equal: ['b'], limit: 9 })).map(
        ({ place }) => place,
      );
      expect(places).toEqual([0, 1, 2]);
    });
  });
};
