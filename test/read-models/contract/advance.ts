import { isSameProgress, type DocumentKey, type ReadModelSet } from '../../../src/read-models/read-models';
import { add, countIn } from '../counts';
import {
  ONE,
  TWO,
  LOG,
  advanceBy,
  at,
  beforeIn,
  commitOf,
  contentsOf,
  deletion,
  note,
  progressAt,
  put,
  type Harness,
} from './storage';

const [THREE, FOUR] = ['3', '4'].map((digit) => ONE.replaceAll('1', digit)) as [string, string];

const before = [
  note(ONE, 'kept', { shelf: 'a', place: 1 }),
  note(ONE, 'changed', { shelf: 'a', place: 2, text: 'old' }),
  note(ONE, 'removed', { shelf: 'a', place: 3 }),
  put(ONE, 'counts', 'all', { count: 3 }),
  put(TWO, 'counts', 'removed', { count: 1 }),
];
const change = [
  note(ONE, 'changed', { shelf: 'b', place: 2, text: 'new' }),
  note(ONE, 'added', { shelf: 'b', place: 1 }),
  deletion(ONE, 'notes', 'removed'),
  deletion(TWO, 'counts', 'removed'),
  put(THREE, 'counts', 'new', { count: 1 }),
];

/** Counts once in each of these tenants, again until it is committed. Returns how often it was overtaken. */
const increase = async (set: ReadModelSet, ...tenantIds: readonly string[]): Promise<number> => {
  let left = tenantIds;
  for (let overtaken = 0; ;) {
    const outcomes = await add(set, left);
    if (outcomes === 'superseded') throw new Error('The set is superseded.');
    left = left.filter((_, i) => outcomes[i] === 'overtaken');
    if (left.length === 0) return overtaken;
    overtaken += left.length;
  }
};

/** Commits: all of a tenant's change or nothing, on exactly the state before. */
export const describeAdvance = (harness: Harness): void => {
  const { filled, there } = harness;

  describe('advancing', () => {
    it('writes all documents of all tenants, their progress, and the control state', async () => {
      const set = await filled(...before);
      await advanceBy(set, 7, ...change);
      expect(await set.control()).toMatchObject({ to: at(7), marks: 0, log: LOG });
      const idOf = ({ tenantId, collection, key }: DocumentKey) => `${tenantId} ${collection} ${key}`;
      const keys = [...before, ...change];
      const after = new Map(keys.map((write) => [idOf(write), write.document]));
      expect(await set.load(keys)).toEqual(keys.map((key) => after.get(idOf(key))));
      expect(await set.progress([TWO, FOUR, ONE, THREE])).toEqual([
        progressAt(7),
        undefined,
        progressAt(7),
        progressAt(7),
      ]);
      const written = [...after.values()].filter((document) => document !== undefined).length;
      expect((await contentsOf(set)).documents).toHaveLength(written + 3);
    });

    it('gives the work all tenants that have not moved, with documents as of their progress', async () => {
      const set = await filled(...before);
      const other = await there();
      await advanceBy(other, 2, ...change);
      const seen: unknown[] = [];
      const outcomes = await set.advance(await beforeIn(set, ONE, FOUR), async (tenantIds) => {
        const line = { tenantId: ONE, collection: 'notes', index: 'on_shelf', equal: ['b'] };
        const [changed] = await set.load([note(ONE, 'changed', {})]);
        seen.push(tenantIds, changed, (await set.lastOf([line]))[0]?.number);
        return [];
      });
      expect(seen).toEqual([[ONE, FOUR], { shelf: 'b', place: 2, text: 'new' }, 2]);
      expect(outcomes).toEqual(
        new Map([
          [ONE, 'done'],
          [FOUR, 'done'],
        ]),
      );
    });

    it('of a tenant that has moved writes nothing, and commits the others', async () => {
      const set = await filled(...before);
      const known = await beforeIn(set, ONE, TWO, THREE);
      await advanceBy(await there(), 2, note(ONE, 'faster', {}), note(THREE, 'faster', {}));
      const late = [note(ONE, 'late', {}), note(TWO, 'late', {}), note(THREE, 'late', {})];
      const work = (tenantIds: readonly string[]) =>
        Promise.all(tenantIds.map((tenantId) => commitOf(set, tenantId, 3, late)));
      expect(await set.advance(known, work, at(3))).toEqual(
        new Map([
          [ONE, 'overtaken'],
          [TWO, 'done'],
          [THREE, 'overtaken'],
        ]),
      );
      expect(await set.load(late)).toEqual([undefined, {}, undefined]);
      expect(await set.progress([ONE, TWO, THREE])).toEqual([progressAt(2), progressAt(3), progressAt(2)]);
      expect(await set.control()).toMatchObject({ to: at(2) });
    });

    it('says that a tenant was overtaken even if nothing is written of it', async () => {
      const set = await filled(...before);
      const known = await beforeIn(set, ONE, THREE);
      await advanceBy(await there(), 2, note(ONE, 'faster', {}), note(THREE, 'faster', {}));
      const both = new Map([
        [ONE, 'overtaken'],
        [THREE, 'overtaken'],
      ]);
      expect(await set.advance(known, async () => [], at(3))).toEqual(both);
      expect(await set.advance(known, async () => [])).toEqual(both);
      expect(await set.control()).toMatchObject({ to: at(2) });
    });

    it('without commits writes nothing but the position, if it is further', async () => {
      const set = await filled(...before);
      const { documents } = await contentsOf(set);
      const known = await beforeIn(set, ONE, TWO);
      const done = new Map([
        [ONE, 'done'],
        [TWO, 'done'],
      ]);
      expect(await set.advance(known, async () => [])).toEqual(done);
      expect(await set.control()).toMatchObject({ to: at(1) });
      expect(await set.advance(known, async () => [], at(5))).toEqual(done);
      expect(await set.advance(known, async () => [], at(4))).toEqual(done);
      expect(await set.advance(new Map(), async () => [], at(3))).toEqual(new Map());
      expect(await set.control()).toMatchObject({ to: at(5) });
      expect(await set.furthest()).toEqual(at(5));
      expect((await contentsOf(set)).documents).toEqual(documents);
    });

    it('knows the furthest event of whichever tenant, which is never before the position', async () => {
      const set = await harness.here.create(LOG);
      expect(await set.furthest()).toBeUndefined();
      const commit = async (tenantId: string, position: number): Promise<void> => {
        const known = await beforeIn(set, tenantId);
        const outcome = await set.advance(known, async () => [await commitOf(set, tenantId, position)]);
        expect(outcome).toEqual(new Map([[tenantId, 'done']]));
      };
      await commit(ONE, 9);
      await commit(TWO, 4);
      expect(await set.control()).not.toHaveProperty('to');
      expect(await set.furthest()).toEqual(at(9));
      await harness.here.succeed(set, undefined);
      await commit(TWO, 7);
      const other = await there();
      expect(await other.furthest()).toEqual(at(9));
      for (let position = 10; position < 30; position += 1) await commit(THREE, position);
      expect(await other.furthest()).toEqual(at(29));
      await advanceBy(set, 31);
      expect([await other.furthest(), (await other.control()).to]).toEqual([at(31), at(31)]);
    });

    it('writes nothing if the work fails, and fails as the work did', async () => {
      const set = await filled(...before);
      const contents = await contentsOf(set);
      const failure = new Error('a reducer failed');
      await expect(
        set.advance(await beforeIn(set, ONE), async () => {
          await set.load([note(ONE, 'kept', {})]);
          throw failure;
        }),
      ).rejects.toBe(failure);
      expect(await contentsOf(set)).toEqual(contents);
      await advanceBy(set, 2, ...change);
    });

    it('writes nothing at all if one collection is unknown', async () => {
      const set = await filled(...before);
      const contents = await contentsOf(set);
      const unknown = { ...put(ONE, 'nowhere', 'a', {}), isNew: true };
      const work = async () => {
        const commit = await commitOf(set, ONE, 2, change);
        return [{ ...commit, writes: [...commit.writes, unknown] }];
      };
      await expect(set.advance(await beforeIn(set, ONE), work, at(2))).rejects.toThrow(/nowhere/);
      expect(await contentsOf(set)).toEqual(contents);
      expect(await contentsOf(await there())).toEqual(contents);
    });

    it('writes nothing at all if a document is there that is said to be new, and says so', async () => {
      const set = await filled(...before);
      await advanceBy(set, 2, note(TWO, 'there', { of: 'two' }));
      const contents = await contentsOf(set);
      const again = { ...note(TWO, 'there', { of: 'nobody' }), isNew: true };
      const work = async () => [
        await commitOf(set, ONE, 3, [note(ONE, 'a', { of: 'one' })]),
        { ...(await commitOf(set, TWO, 3)), writes: [again] },
      ];
      await expect(set.advance(await beforeIn(set, ONE, TWO), work, at(3))).rejects.toMatchObject({
        code: 'document_exists',
      });
      expect(await contentsOf(set)).toEqual(contents);
      await advanceBy(set, 3, note(TWO, 'there', { of: 'two again' }));
    });

    it('that failed gives no tenant the documents of another', async () => {
      const set = await filled();
      const writes = ['notes', 'nowhere'].map((name) => ({ ...put(THREE, name, 'a', {}), isNew: true }));
      const work = async () => [{ ...(await commitOf(set, THREE, 2)), writes }];
      await expect(set.advance(await beforeIn(set, THREE), work)).rejects.toThrow();
      await advanceBy(set, 2, note(FOUR, 'a', { of: 'four' }));
      await advanceBy(set, 3, note(THREE, 'b', { of: 'three' }));
      expect(await set.get(FOUR, 'notes', 'b')).toBeUndefined();
      expect(await set.get(THREE, 'notes', 'a')).toBeUndefined();
      expect(await set.get(THREE, 'notes', 'b')).toEqual({ of: 'three' });
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
      const readModels = await harness.again();
      const other = (await readModels.live())?.set as ReadModelSet;
      for (let i = 0; i < 20; i += 1) {
        const document = { shelf: 's', place: i };
        await advanceBy(i % 2 === 0 ? here : other, i + 2, note(ONE, 'a', document));
        expect((await readModels.live())?.control).toMatchObject({ to: at(i + 2) });
        for (const set of [here, other]) {
          expect(await set.get(ONE, 'notes', 'a')).toEqual(document);
          expect(await set.load([note(ONE, 'a', {})])).toEqual([document]);
          const query = { index: 'by_shelf', equal: ['s'], limit: 9 };
          expect(await set.find(ONE, 'notes', query)).toEqual([document]);
          expect(await set.control()).toMatchObject({ to: at(i + 2) });
          expect(await set.progress([ONE])).toEqual([progressAt(i + 2)]);
          expect(await set.furthest()).toEqual(at(i + 2));
        }
      }
    });

    it('loses and doubles nothing when several processes commit the same tenants at once', async () => {
      const here = await filled();
      const sets = [here, await there(), await there()];
      await Promise.all(
        sets.flatMap((set, i) =>
          [1, 2].map(async () => {
            const tenantIds = i === 0 ? [ONE, TWO] : [ONE, TWO, THREE].slice(i - 1);
            for (let round = 0; round < 5; round += 1) await increase(set, ...tenantIds);
          }),
        ),
      );
      const counts = await Promise.all([ONE, TWO, THREE].map((tenantId) => countIn(here, tenantId)));
      expect(counts).toEqual([20, 30, 20]);
      const progress = await here.progress([ONE, TWO, THREE]);
      expect(progress.map((one) => one?.tenant)).toEqual([20, 30, 20]);
    });

    it('commits tenants of several processes without one being overtaken by another', async () => {
      const here = await filled();
      const other = await there();
      const overtaken = await Promise.all(
        [here, other].map(async (set, i) => {
          let times = 0;
          for (let round = 0; round < 15; round += 1)
            times += await increase(set, `tenant ${i} 1`, `tenant ${i} 2`);
          return times;
        }),
      );
      expect(overtaken).toEqual(overtaken.map(() => 0));
    });

    it('of a build is as any other, and what it wrote is there after it is finished', async () => {
      const build = await harness.here.create(LOG);
      await advanceBy(build, 1, ...before);
      await advanceBy(build, 2, ...change);
      const known = new Map([
        [ONE, progressAt(1)],
        [TWO, progressAt(2)],
      ]);
      const work = (tenantIds: readonly string[]) =>
        Promise.all(tenantIds.map((tenantId) => commitOf(build, tenantId, 3)));
      expect(await build.advance(known, work, at(3))).toEqual(
        new Map([
          [ONE, 'overtaken'],
          [TWO, 'done'],
        ]),
      );
      expect(await build.control()).toMatchObject({ to: at(2) });
      await build.finish();
      const whole = await filled(...before);
      await advanceBy(whole, 2, ...change);
      await advanceBy(whole, 3, deletion(TWO, 'counts', 'never there'));
      expect((await contentsOf(build)).documents).toEqual((await contentsOf(whole)).documents);
      await advanceBy(build, 4, note(ONE, 'late', { shelf: 'b', place: 0 }));
      const query = { index: 'by_shelf', equal: ['b'], limit: 9 };
      expect((await build.find(ONE, 'notes', query)).map(({ place }) => place)).toEqual([0, 1, 2]);
    });
  });

  it('the same progress is what has the same revisions, position and mark', () => {
    const [one, other] = [progressAt(1), progressAt(2)];
    expect(isSameProgress(one, { ...one })).toBe(true);
    expect(isSameProgress(undefined, undefined)).toBe(true);
    for (const another of [undefined, other, { ...one, activity: 1 }, { ...one, tenant: 2 }])
      expect(isSameProgress(one, another)).toBe(false);
  });
};
