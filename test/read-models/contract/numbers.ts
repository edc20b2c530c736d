import type { Document, Line } from '../../../projections/projector';
import { LOG, ONE, TWO, advanceBy, deletion, note, type Harness } from './storage';

/** Numbered documents: the last of a line, and those with certain numbers. */
export const describeNumbers = (harness: Harness): void => {
  const { filled, filledOnce, there } = harness;

  describe('a line', () => {
    const line = { index: 'on_shelf', equal: ['x'] };
    const one = filledOnce(note(ONE, 'a', { shelf: 'x', place: 1, moment: '1' }));
    const wrong: readonly [string, Partial<Line>, string?][] = [
      ['an undeclared index', { index: 'by_nothing' }],
      ['an index that numbers nothing', { index: 'by_shelf' }],
      ['a name that every object has as a property', { index: 'constructor' }],
      ['too few values', { equal: [] }],
      ['too many values', { equal: ['x', 1] }],
      ['a collection without numbers', {}, 'counts'],
      ['an undeclared collection', {}, 'nowhere'],
    ];
    it.each(wrong)(
      'refuses %s, asked for its end and for numbers',
      async (_, change, collection = 'notes') => {
        const asked = { ...line, ...change };
        await expect(one().lastOf([{ tenantId: ONE, collection, ...asked }])).rejects.toThrow();
        await expect(one().at(ONE, collection, asked, [1])).rejects.toThrow();
      },
    );
  });

  describe('the documents with certain numbers', () => {
    const line = { index: 'on_shelf', equal: ['x'] };
    const on = (shelf: string | number, count: number) =>
      Array.from({ length: count }, (_, i) => ({ shelf, place: i + 1, moment: String(i), odd: { $set: i } }));
    const notes = (tenantId: string, of: readonly Document[]) =>
      of.map((document) =>
        note(tenantId, `${String(document['shelf'])} ${String(document['place'])}`, document),
      );
    const shelved = filledOnce(
      ...notes(ONE, on('x', 5)),
      ...notes(ONE, on('y', 2)),
      ...notes(ONE, on(10, 1)),
      ...notes(TWO, on('x', 2)),
    );

    it('are found in the order in which they were asked for', async () => {
      const set = shelved();
      const onX = on('x', 5);
      for (const numbers of [[1], [5, 1, 3], [2, 2], [4, 3, 2, 1], []])
        expect(await set.at(ONE, 'notes', line, numbers)).toEqual(numbers.map((n) => onX[n - 1]));
      expect(await set.at(ONE, 'notes', { ...line, equal: ['y'] }, [2])).toEqual([on('y', 2)[1]]);
      expect(await set.at(ONE, 'notes', { ...line, equal: [10] }, [1])).toEqual(on(10, 1));
      expect(await set.at('nobody', 'notes', line, [])).toEqual([]);
    });

    it.each<[string, string, string, readonly number[]]>([
      ['a number', ONE, 'x', [1, 6]],
      ['all numbers', ONE, 'x', [0]],
      ['one that another line has', ONE, 'y', [3]],
      ['a line', ONE, 'z', [1]],
      ['one that another tenant has', TWO, 'x', [3]],
      ['a tenant', 'nobody', 'x', [1]],
    ])('reject if %s is missing', async (_, tenantId, shelf, numbers) => {
      await expect(
        shelved().at(tenantId, 'notes', { ...line, equal: [shelf] }, numbers),
      ).rejects.toMatchObject({
        code: 'read_models_unavailable',
        message: expect.stringMatching(/^Documents of notes.* are missing\. Rebuild /),
      });
    });

    it('are found in a build, and by any process after a commit', async () => {
      const build = await harness.here.create(LOG);
      await advanceBy(build, 1, ...notes(ONE, on('x', 2)));
      expect(await build.at(ONE, 'notes', line, [2, 1])).toEqual(on('x', 2).toReversed());
      const here = await filled(...notes(ONE, on('x', 2)));
      const other = await there();
      await advanceBy(here, 2, ...notes(ONE, on('x', 3).slice(2)));
      expect(await other.at(ONE, 'notes', line, [3, 1])).toEqual([on('x', 3)[2], on('x', 3)[0]]);
    });
  });

  describe('the ends of lines', () => {
    const on = (shelf: string, place: number, moment?: string) => ({
      shelf,
      place,
      ...(moment !== undefined && { moment }),
    });
    const lineOf = (tenantId: string, shelf: string | number) => ({
      tenantId,
      collection: 'notes',
      index: 'on_shelf',
      equal: [shelf],
    });

    it('are found in the order in which they were asked for, of any tenants', async () => {
      const set = await filled(
        note(ONE, 'c', on('x', 1, '1')),
        note(ONE, 'a', on('x', 2, '3')),
        note(ONE, 'b', on('x', 3, '3')),
        note(ONE, 'y', on('y', 1, '0')),
        note(ONE, 'ten', { shelf: 10, place: 1, moment: '7' }),
        note(TWO, 'a', on('x', 1, '9')),
        note(TWO, 'none', { text: 'on no shelf' }),
        note(ONE, 'unknown', on('z', 1)),
      );
      const lines = [
        lineOf(TWO, 'x'),
        lineOf(ONE, 'nothing'),
        lineOf(ONE, 'x'),
        lineOf(ONE, 'y'),
        lineOf('nobody', 'x'),
        lineOf(ONE, 10),
        lineOf(ONE, '10'),
        lineOf(ONE, 'x'),
        lineOf(ONE, 'z'),
      ];
      const none = { number: 0, value: undefined };
      const ends = await set.lastOf(lines);
      expect(ends.slice(0, -1)).toEqual([
        { number: 1, value: '9' },
        none,
        { number: 3, value: '3' },
        { number: 1, value: '0' },
        none,
        { number: 1, value: '7' },
        none,
        { number: 3, value: '3' },
      ]);
      expect(ends.at(-1)?.number).toBe(1);
      expect(await set.lastOf([])).toEqual([]);
      for (const [i, line] of lines.entries()) expect(await set.lastOf([line])).toEqual([ends[i]]);
    });

    it('follow every commit, of any process', async () => {
      const here = await filled(note(ONE, 'a', on('x', 1, '1')));
      const other = await there();
      for (let place = 2; place < 12; place += 1) {
        const one = note(ONE, `n${place}`, on('x', place, String(place).padStart(2, '0')));
        await advanceBy(place % 2 === 0 ? here : other, place, one);
        const end = { number: place, value: String(place).padStart(2, '0') };
        expect(await here.lastOf([lineOf(ONE, 'x')])).toEqual([end]);
        expect(await other.lastOf([lineOf(ONE, 'x')])).toEqual([end]);
      }
      await advanceBy(here, 12, deletion(ONE, 'notes', 'n11'), note(ONE, 'n10', { text: 'on no shelf' }));
      expect(await other.lastOf([lineOf(ONE, 'x')])).toEqual([{ number: 9, value: '09' }]);
    });

    it('are found in a build, between its commits', async () => {
      const build = await harness.here.create(LOG);
      expect(await build.lastOf([lineOf(ONE, 'x')])).toEqual([{ number: 0, value: undefined }]);
      await advanceBy(build, 1, note(ONE, 'a', on('x', 1, '1')), note(ONE, 'b', on('x', 2, '2')));
      expect(await build.lastOf([lineOf(ONE, 'x')])).toEqual([{ number: 2, value: '2' }]);
      const query = { index: 'on_shelf', equal: ['x'], descending: true, limit: 1 };
      expect(await build.find(ONE, 'notes', query)).toEqual([on('x', 2, '2')]);
      const asked = { index: 'on_shelf', equal: ['x'] };
      expect(await build.at(ONE, 'notes', asked, [2])).toEqual([on('x', 2, '2')]);
    });
  });
};
