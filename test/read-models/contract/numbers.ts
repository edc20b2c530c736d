import type { Line } from '../../../projections/projector';
import { ONE, TWO, note, type Harness } from './storage';

/** Numbered documents: how many of them come before a value. */
export const describeNumbers = ({ filled, filledOnce }: Harness): void => {
  describe('counting the documents before values', () => {
    const moments = ['1', '3', '3', '3', '5', '8', '8'];
    const values = ['4', '', '0', '1', '2', '3', '5', '6', '8', '9', '4'];
    const line = { index: 'on_shelf', equal: ['x'] };

    it('agrees with looking at each of them', async () => {
      const on = (tenant: string, shelf: string) =>
        moments.map((moment, i) => note(tenant, `${shelf}${i}`, { shelf, place: i + 1, moment }));
      const set = await filled(
        ...on(ONE, 'x'),
        ...on(ONE, 'y').slice(0, 2),
        note(TWO, 'x', { shelf: 'x', place: 1, moment: '9' }),
      );
      const among = (all: readonly string[]) =>
        values.map((value) => all.filter((moment) => moment < value).length);
      const onY = { ...line, equal: ['y'] };
      expect(await set.countsBefore(ONE, 'notes', line, values)).toEqual(among(moments));
      expect(await set.countsBefore(ONE, 'notes', onY, values)).toEqual(among(moments.slice(0, 2)));
      expect(await set.countsBefore(ONE, 'notes', { ...line, equal: ['z'] }, values)).toEqual(among([]));
      expect(await set.countsBefore(TWO, 'notes', line, values)).toEqual(among(['9']));
      expect(await set.countsBefore('nobody', 'notes', line, values)).toEqual(among([]));
      expect(await set.countsBefore(ONE, 'notes', line, [])).toEqual([]);
    });

    const one = filledOnce(note(ONE, 'a', { shelf: 'x', place: 1, moment: '1' }));
    it.each<[string, Partial<Line>, string?]>([
      ['an undeclared index', { index: 'by_nothing' }],
      ['an index that numbers nothing', { index: 'by_shelf' }],
      ['a name that every object has as a property', { index: 'constructor' }],
      ['too few values', { equal: [] }],
      ['too many values', { equal: ['x', 1] }],
      ['a collection without numbers', {}, 'counts'],
      ['an undeclared collection', {}, 'nowhere'],
    ])('refuses %s', async (_, wrong, collection = 'notes') => {
      await expect(one().countsBefore(ONE, collection, { ...line, ...wrong }, ['1'])).rejects.toThrow();
    });
  });
};
