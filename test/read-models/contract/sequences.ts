import type { SequencePart } from '../../../projections/projector';
import { ONE, TWO, note, type Harness } from './harness';

/** Numbered sequences: how many documents come before a value. */
export const sequencesContract = (harness: Harness): void => {
  const { filled } = harness;

  describe('the ends of a sequence', () => {
    it('are its values in order, with the last number of each', async () => {
      const generation = await filled(
        ...[1, 2, 3].map((place) => note(ONE, `b${place}`, { shelf: 'b', place, moment: '1' })),
        note(ONE, 'a1', { shelf: 'a', place: 1, moment: '1' }),
        note(ONE, 'nul', { shelf: 'b\0', place: 7, moment: '1' }),
        note(ONE, 'outside', { shelf: 'c' }),
        note(TWO, 'd1', { shelf: 'd', place: 1, moment: '1' }),
      );
      const ends = (tenantId: string, limit: number) =>
        generation.reader.sequenceEnds(tenantId, 'notes', 'on_shelf', limit);
      const all = [
        { value: 'a', last: 1 },
        { value: 'b', last: 3 },
        { value: 'b\0', last: 7 },
      ];
      expect(await ends(ONE, 100)).toEqual(all);
      expect(await ends(ONE, 2)).toEqual(all.slice(0, 2));
      expect(await ends(TWO, 100)).toEqual([{ value: 'd', last: 1 }]);
      expect(await ends('nobody', 100)).toEqual([]);
    });

    it.each(['by_shelf', 'by_nothing', 'constructor'])(
      'refuses %s, which is not a sequence',
      async (sequence) => {
        const generation = await filled(note(ONE, 'a', { shelf: 'x', place: 1, moment: '1' }));
        await expect(generation.reader.sequenceEnds(ONE, 'notes', sequence, 1)).rejects.toThrow();
      },
    );
  });

  describe('counting the documents before a value', () => {
    const moments = ['1', '3', '3', '3', '5', '8', '8'];
    const sequence = (last: number, equal?: readonly string[]) => ({
      sequence: 'on_shelf',
      equal: equal ?? ['x'],
      last,
      monotonicField: 'moment',
    });

    it('agrees with looking at each of them', async () => {
      const on = (tenant: string, shelf: string) =>
        moments.map((moment, i) => note(tenant, `${shelf}${i}`, { shelf, place: i + 1, moment }));
      const later = moments.map((moment, i) =>
        note(TWO, `x${i}`, { shelf: 'x', place: i + 1, moment: `9${moment}` }),
      );
      const generation = await filled(...on(ONE, 'x'), ...on(ONE, 'y').slice(0, 2), ...later);
      for (const value of ['', '0', '1', '2', '3', '4', '5', '6', '8', '9'])
        for (let last = 0; last <= moments.length; last += 1) {
          const expected = moments.slice(0, last).filter((moment) => moment < value).length;
          expect(await generation.reader.countBefore(ONE, 'notes', sequence(last), value)).toBe(expected);
          for (let first = 1; first <= last + 1; first += 1)
            expect(
              await generation.reader.countBefore(ONE, 'notes', { ...sequence(last), first }, value),
            ).toBe(Math.max(first - 1, expected));
        }
      const values = ['4', '', '9', '1'];
      const part = { ...sequence(5), first: 2 };
      const parts = [part, sequence(2, ['y']), sequence(0, ['z'])];
      const one = (each: SequencePart) =>
        Promise.all(values.map((value) => generation.reader.countBefore(ONE, 'notes', each, value)));
      expect(await generation.reader.countsBefore(ONE, 'notes', parts, values)).toEqual(
        await Promise.all(parts.map(one)),
      );
      expect(await generation.reader.countsBefore(ONE, 'notes', parts, [])).toEqual([[], [], []]);
      expect(await generation.reader.countsBefore(ONE, 'notes', [], values)).toEqual([]);
      expect(await generation.reader.countsBefore('nobody', 'notes', [sequence(7)], values)).toEqual([
        [0, 0, 0, 0],
      ]);
      expect(await generation.reader.countBefore(ONE, 'notes', sequence(2, ['y']), '9')).toBe(2);
      expect(await generation.reader.countBefore(TWO, 'notes', sequence(7), '9')).toBe(0);
      expect(await generation.reader.countBefore('nobody', 'notes', sequence(7), '9')).toBe(0);
    });

    it('refuses a sequence with a gap', async () => {
      const generation = await filled(note(ONE, 'a', { shelf: 'x', place: 2, moment: '1' }));
      await expect(generation.reader.countBefore(ONE, 'notes', sequence(2), '1')).rejects.toThrow(/missing/);
    });

    it.each<[string, Partial<SequencePart>, string?]>([
      ['an undeclared sequence', { sequence: 'by_nothing' }],
      ['an index that is not a sequence', { sequence: 'by_shelf' }],
      ['a name that every object has as a property', { sequence: 'constructor' }],
      ['an undeclared monotonic field', { monotonicField: 'place' }],
      ['too few values', { equal: [] }],
      ['too many values', { equal: ['x', 1] }],
      ['a collection without sequences', {}, 'counts'],
      ['an undeclared collection', {}, 'nowhere'],
    ])('refuses %s', async (_, part, collection = 'notes') => {
      const generation = await filled(note(ONE, 'a', { shelf: 'x', place: 1, moment: '1' }));
      await expect(
        generation.reader.countBefore(ONE, collection, { ...sequence(1), ...part }, '1'),
      ).rejects.toThrow();
    });
  });
};
