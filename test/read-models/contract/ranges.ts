import type { Document, Query, Selection } from '../../../projections/projector';
import { ONE, TWO, advanceBy, deletion, put, type Harness } from './storage';

const red = { colour: 'red' };
const blue = { colour: 'blue' };
const card = (tenantId: string, key: string, document: Document) => put(tenantId, 'cards', key, document);

/** Box x holds the numbers 1 to 6, every second one red, and 9 twice; box y holds three, and z none. */
const cards = [
  ...[6, 1, 5, 2, 4, 3].map((number) =>
    card(ONE, `x${number}`, { box: 'x', number, ...(number % 2 === 0 ? red : blue), id: `x${number}` }),
  ),
  card(ONE, 'x9a', { box: 'x', number: 9, ...red, id: 'x9a' }),
  card(ONE, 'x9b', { box: 'x', number: 9, ...red, id: 'x9b' }),
  ...[1, 2, 3].map((number) => card(ONE, `y${number}`, { box: 'y', number, ...red, id: `y${number}` })),
  card(ONE, 'z1', { box: 'z', id: 'z1' }),
  ...[1, 2, 3].map((number) => card(TWO, `x${number}`, { box: 'x', number, ...red, id: `other ${number}` })),
];
const x = { index: 'by_box', equal: ['x'] } as const;
const idsOf = (found: readonly Document[]) => found.map((document) => document['id']);

/** Ranges of an index. Documents with equal values come in any order. */
export const describeRanges = ({ filled, filledOnce }: Harness): void => {
  describe('finding a range of an index', () => {
    const boxed = filledOnce(...cards);

    it.each<[string, Selection, readonly string[]]>([
      ['a range from a value, inclusive', { ...x, from: 4, upTo: 8 }, ['x4', 'x5', 'x6']],
      ['a range up to a value, inclusive', { ...x, upTo: 3 }, ['x1', 'x2', 'x3']],
      ['a range between two values', { ...x, from: 2, upTo: 4 }, ['x2', 'x3', 'x4']],
      ['a single value', { ...x, from: 5, upTo: 5 }, ['x5']],
      ['nothing between two values that do not occur', { ...x, from: 6.5, upTo: 8 }, []],
      ['nothing if the ends are swapped', { ...x, from: 4, upTo: 3 }, []],
      ['a range from zero', { ...x, from: 0, upTo: 1 }, ['x1']],
      ['a range of keys', { from: 'x6', upTo: 'y1' }, ['x6', 'x9a', 'x9b', 'y1']],
      ['a range of the last field', { index: 'by_box', equal: ['x', 2], from: 'red' }, ['x2']],
      ['a range after all fields, by key', { index: 'by_box', equal: ['x', 9, 'red'], from: 'x9b' }, ['x9b']],
    ])('returns %s, in both orders, and limited', async (_, selection, expected) => {
      const find = async (more: Omit<Query, keyof Selection>) =>
        idsOf(await boxed().find(ONE, 'cards', { ...selection, ...more }));
      const backwards = expected.toReversed();
      expect(await find({ limit: 99 })).toEqual(expected);
      expect(await find({ limit: 99, descending: true })).toEqual(backwards);
      expect(await find({ limit: 2 })).toEqual(expected.slice(0, 2));
      expect(await find({ limit: 2, descending: true })).toEqual(backwards.slice(0, 2));
    });

    it.each<[string, Selection, readonly string[]]>([
      ['a value that occurs twice', { ...x, from: 9 }, ['x9a', 'x9b']],
      ['a range of text', { index: 'by_box', from: 'xx', upTo: 'z' }, ['y1', 'y2', 'y3', 'z1']],
      ['no document without the field', { index: 'by_number', upTo: 1 }, ['x1', 'y1']],
    ])('returns %s', async (_, selection, expected) => {
      const found = await boxed().find(ONE, 'cards', { ...selection, limit: 99 });
      expect(found).toHaveLength(expected.length);
      expect(new Set(idsOf(found))).toEqual(new Set(expected));
    });

    it('returns everything without a selection', async () => {
      const all = async (tenantId: string) => (await boxed().find(tenantId, 'cards', { limit: 99 })).length;
      expect([await all(ONE), await all(TWO)]).toEqual([12, 3]);
      const last = await boxed().find(ONE, 'cards', { limit: 2, descending: true });
      expect(idsOf(last)).toEqual(['z1', 'y3']);
    });

    it('finds nothing for a tenant without documents', async () => {
      const stranger = ONE.replaceAll('1', '3');
      expect(await boxed().find(stranger, 'cards', { ...x, from: 1, limit: 9 })).toEqual([]);
    });

    it('reflects changes and removals', async () => {
      const set = await filled(...cards);
      await advanceBy(
        set,
        2,
        deletion(ONE, 'cards', 'x1'),
        card(ONE, 'x2', { box: 'y', number: 2.5, ...red, id: 'x2' }),
        card(ONE, 'x7', { box: 'x', number: 7, ...blue, id: 'x7' }),
        card(ONE, 'x6', { box: 'x', id: 'x6' }),
      );
      const found = async (box: string) =>
        idsOf(await set.find(ONE, 'cards', { index: 'by_box', equal: [box], limit: 99 }));
      expect(new Set(await found('x'))).toEqual(new Set(['x6', 'x3', 'x4', 'x5', 'x7', 'x9a', 'x9b']));
      expect(await found('y')).toEqual(['y1', 'y2', 'x2', 'y3']);
    });
  });
};
