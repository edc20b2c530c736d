import type { Progress, ReadModelSet, TenantCommit } from '../../../src/read-models/read-models';
import {
  ONE,
  TWO,
  advanceBy,
  at,
  beforeIn,
  commitOf,
  markOf,
  note,
  progressAt,
  type Harness,
} from './storage';

const tenantOf = (i: number): string => `${ONE.slice(0, -2)}${String(i).padStart(2, '0')}`;

/** Commits these changes of the progress of tenants. */
const commit = async (
  set: ReadModelSet,
  changes: Readonly<Record<string, Partial<TenantCommit> & { readonly progress: Progress }>>,
  to?: number,
): Promise<'superseded' | readonly string[]> => {
  const before = await beforeIn(set, ...Object.keys(changes));
  const work = async (tenantIds: readonly string[]) =>
    Promise.all(
      tenantIds.map(async (tenantId) => ({
        ...(await commitOf(set, tenantId, 1)),
        head: undefined,
        ...changes[tenantId],
      })),
    );
  const outcomes = await set.advance(before, work, to === undefined ? undefined : at(to));
  return outcomes === 'superseded' ? outcomes : [...outcomes.values()];
};
const parkedAt = (tenantId: string, position: number): Progress => ({
  ...progressAt(position - 1),
  parked: markOf(tenantId, position),
});

/** Tenants that wait behind an event. */
export const describeParking = ({ filled, there }: Harness): void => {
  describe('parking', () => {
    it('is part of the progress, and counted in the control state', async () => {
      const set = await filled(note(ONE, 'a', {}));
      const other = await there();
      expect(await commit(set, { [ONE]: { progress: parkedAt(ONE, 2) } })).toEqual(['done']);
      expect(await other.progress([ONE])).toEqual([parkedAt(ONE, 2)]);
      expect((await other.control()).marks).toBe(1);
      expect(await commit(other, { [TWO]: { progress: parkedAt(TWO, 1) } }, 2)).toEqual(['done']);
      // Another mark takes the place of the first one.
      expect(await commit(set, { [ONE]: { progress: parkedAt(ONE, 5) } })).toEqual(['done']);
      expect(await set.control()).toMatchObject({ marks: 2, to: at(2) });
      expect(await other.parked(9)).toEqual([markOf(ONE, 5), markOf(TWO, 1)]);
      const freed = { progress: progressAt(5), head: at(5), readUpTo: at(5).position };
      expect(await commit(other, { [ONE]: freed })).toEqual(['done']);
      expect((await set.control()).marks).toBe(1);
      expect(await set.parked(9)).toEqual([markOf(TWO, 1)]);
      expect(await set.furthest()).toEqual(at(5));
    });

    it('is a progress of its own: whoever does not know of the mark is overtaken', async () => {
      const set = await filled(note(ONE, 'a', {}));
      const known = await beforeIn(set, ONE);
      await commit(await there(), { [ONE]: { progress: { ...progressAt(1), parked: markOf(ONE, 2) } } });
      const late = await set.advance(known, async () => [await commitOf(set, ONE, 2)], at(2));
      expect(late).toEqual(new Map([[ONE, 'overtaken']]));
      expect((await set.control()).to).toEqual(at(1));
    });

    it('is listed page by page, in the order of the tenants', async () => {
      const set = await filled();
      const some = [7, 3, 11, 5, 2];
      const changes = some.map((i) => [tenantOf(i), { progress: parkedAt(tenantOf(i), i) }]);
      await advanceBy(set, 1, ...Array.from({ length: 15 }, (_, i) => note(tenantOf(20 + i), 'a', {})));
      await commit(set, Object.fromEntries(changes) as Parameters<typeof commit>[1]);
      const all = some.toSorted((a, b) => a - b).map((i) => markOf(tenantOf(i), i));
      expect(await set.parked(99)).toEqual(all);
      expect(await set.parked(2)).toEqual(all.slice(0, 2));
      expect(await set.parked(2, tenantOf(3))).toEqual(all.slice(2, 4));
      expect(await set.parked(2, tenantOf(4))).toEqual(all.slice(2, 4));
      expect(await set.parked(9, tenantOf(11))).toEqual([]);
      expect((await set.control()).marks).toBe(5);
    });
  });

  describe('freeing a tenant', () => {
    const freed = (readUpTo: number | undefined) => ({
      progress: progressAt(3),
      head: at(3),
      ...(readUpTo !== undefined && { readUpTo: at(readUpTo).position }),
    });

    it.each<[string, number | undefined]>([
      ['whose streams were not read up to the position of the set', 6],
      ['whose streams were read up to nowhere', undefined],
    ])('%s is refused', async (_, readUpTo) => {
      const set = await filled(note(ONE, 'a', {}));
      await commit(set, { [ONE]: { progress: parkedAt(ONE, 2) } }, 7);
      const other = { progress: progressAt(8), head: at(8) };
      const outcomes = await commit(set, { [ONE]: freed(readUpTo), [TWO]: other }, 9);
      expect(outcomes).toEqual(['overtaken', 'done']);
      expect(await set.progress([ONE, TWO])).toEqual([parkedAt(ONE, 2), progressAt(8)]);
      expect(await set.control()).toMatchObject({ to: at(7), marks: 1 });
      expect(await commit(set, { [ONE]: freed(7) })).toEqual(['done']);
      expect((await set.control()).marks).toBe(0);
    });

    it('is refused, or the position waits, if it moves at the same time', async () => {
      const set = await filled(note(ONE, 'a', {}));
      const follower = await there();
      let before = 1;
      for (let position = 10; position < 20; position += 1) {
        await commit(set, { [ONE]: { progress: parkedAt(ONE, 2) } });
        const parked = await beforeIn(follower, ONE);
        const [isFreed, moved] = await Promise.all([
          commit(set, { [ONE]: freed(position - 1) }),
          follower.advance(parked, async () => [], at(position)),
        ]);
        const hasMoved = moved !== 'superseded' && moved.get(ONE) === 'done';
        expect(isFreed).toEqual([hasMoved ? 'overtaken' : 'done']);
        expect((await set.control()).to).toEqual(at(hasMoved ? position : before));
        before = position;
        await advanceBy(set, position);
      }
    });
  });
};
