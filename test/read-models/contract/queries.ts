import type { Query } from '../../../projections/projector';
import type { ReadModelSet } from '../../../src/read-models/read-models';
import { ONE, TWO, LOG, advanceBy, deletion, note, put, type Harness } from './storage';

/** What queries return. */
export const describeQueries = (harness: Harness): void => {
  const { filled, filledOnce } = harness;
  const shelf = { shelf: 's', place: 1 };
  const onShelf = { index: 'by_shelf', equal: ['s'], limit: 9 };

  describe('reading', () => {
    it('loads in the order of the keys, including missing documents', async () => {
      const set = await filled(
        note(ONE, 'a', { text: 'a' }),
        note(ONE, 'b', { text: 'b' }),
        note(TWO, 'a', { text: 'a of two' }),
        put(ONE, 'counts', 'a', { count: 1 }),
      );
      const keys = [
        note(ONE, 'b', {}),
        note(ONE, 'missing', {}),
        note(TWO, 'a', {}),
        put(ONE, 'counts', 'a', {}),
        put(TWO, 'counts', 'a', {}),
        note('nobody', 'a', {}),
        note(ONE, 'a', {}),
        note(ONE, 'b', {}),
      ];
      expect(await set.load(keys)).toEqual([
        { text: 'b' },
        undefined,
        { text: 'a of two' },
        { count: 1 },
        undefined,
        undefined,
        { text: 'a' },
        { text: 'b' },
      ]);
      expect(await set.load([])).toEqual([]);
    });

    it('does not show a removed document anywhere until it is written again', async () => {
      const set = await filled(note(ONE, 'a', shelf), note(ONE, 'b', shelf));
      await advanceBy(set, 2, deletion(ONE, 'notes', 'a'), deletion(ONE, 'notes', 'never there'));
      expect(await set.get(ONE, 'notes', 'a')).toBeUndefined();
      expect(await set.load([note(ONE, 'a', {})])).toEqual([undefined]);
      expect(await set.find(ONE, 'notes', { limit: 9 })).toEqual([shelf]);
      expect(await set.find(ONE, 'notes', onShelf)).toEqual([shelf]);
      expect((await set.scan('notes', 9)).map((row) => row.key)).toEqual(['b']);
      await advanceBy(set, 3, note(ONE, 'a', { text: 'again' }));
      expect(await set.get(ONE, 'notes', 'a')).toEqual({ text: 'again' });
    });

    it('shows the last of several writes of one document in one change', async () => {
      const set = await filled(note(ONE, 'a', { n: 1 }), note(ONE, 'a', { n: 2 }), note(ONE, 'b', {}));
      await advanceBy(set, 2, deletion(ONE, 'notes', 'b'), note(ONE, 'b', { n: 3 }));
      expect(await set.find(ONE, 'notes', { limit: 9 })).toEqual([{ n: 2 }, { n: 3 }]);
    });

    it('replaces a document completely', async () => {
      const set = await filled(note(ONE, 'a', { shelf: 's', text: 'first' }));
      await advanceBy(set, 2, note(ONE, 'a', { colour: 'red' }));
      expect(await set.get(ONE, 'notes', 'a')).toEqual({ colour: 'red' });
      expect(await set.find(ONE, 'notes', onShelf)).toEqual([]);
    });

    it('separates tenants', async () => {
      const set = await filled(
        note(ONE, 'same', { shelf: 's', of: 'one' }),
        note(TWO, 'same', { shelf: 's', of: 'two' }),
        note(TWO, 'other', { shelf: 's', of: 'two' }),
      );
      expect(await set.get(ONE, 'notes', 'same')).toEqual({ shelf: 's', of: 'one' });
      expect(await set.get(ONE, 'notes', 'other')).toBeUndefined();
      expect(await set.find(ONE, 'notes', { limit: 9 })).toHaveLength(1);
      expect(await set.find(ONE, 'notes', onShelf)).toEqual([{ shelf: 's', of: 'one' }]);
      await advanceBy(set, 2, deletion(ONE, 'notes', 'same'));
      expect(await set.get(TWO, 'notes', 'same')).toEqual({ shelf: 's', of: 'two' });
    });

    it('refuses an undeclared collection', async () => {
      const set = await filled();
      await expect(set.get(ONE, 'nowhere', 'a')).rejects.toThrow(/nowhere/);
      await expect(set.find(ONE, 'nowhere', { limit: 1 })).rejects.toThrow(/nowhere/);
      await expect(set.scan('nowhere', 1)).rejects.toThrow(/nowhere/);
      await expect(set.load([put(ONE, 'nowhere', 'a', {})])).rejects.toThrow(/nowhere/);
      const line = { tenantId: ONE, collection: 'nowhere', index: 'on_shelf', equal: ['s'] };
      await expect(set.lastOf([line])).rejects.toThrow(/nowhere/);
    });
  });

  describe('finding', () => {
    const shelves = [
      note(ONE, 'k1', { shelf: 'b', place: 10, n: 1 }),
      note(ONE, 'k2', { shelf: 'b', place: 2, n: 2 }),
      note(ONE, 'k3', { shelf: 'a', place: 7, n: 3 }),
      note(ONE, 'k5', { shelf: 'b', place: 4, n: 5 }),
      note(ONE, 'k4', { shelf: 'b', place: 3, n: 4, colour: 'red' }),
      note(ONE, 'k6', { colour: 'blue', n: 6 }),
      note(ONE, 'k7', { shelf: '10', place: '2', n: 7 }),
      note(ONE, 'k8', { shelf: 10, place: 2.5, n: 8 }),
      note(TWO, 'k0', { shelf: 'b', place: 2, colour: 'red', n: 0 }),
    ];

    const shelved = filledOnce(...shelves);
    const queries: readonly [string, Query, readonly number[]][] = [
      ['everything by key', { limit: 99 }, [1, 2, 3, 4, 5, 6, 7, 8]],
      ['no more than asked for', { limit: 3 }, [1, 2, 3]],
      [
        'by the first field, in the order of the rest',
        { index: 'by_shelf', equal: ['b'], limit: 99 },
        [2, 4, 5, 1],
      ],
      ['by the first field, limited', { index: 'by_shelf', equal: ['b'], limit: 2 }, [2, 4]],
      ['by all fields', { index: 'by_shelf', equal: ['b', 2], limit: 99 }, [2]],
      ['by a number, which is not text', { index: 'by_shelf', equal: [10], limit: 99 }, [8]],
      ['by text, which is not a number', { index: 'by_shelf', equal: ['10'], limit: 99 }, [7]],
      ['by a fraction', { index: 'by_shelf', equal: [10, 2.5], limit: 99 }, [8]],
      ['by another index', { index: 'by_colour', equal: ['red'], limit: 99 }, [4]],
      ['what is in an index', { index: 'by_colour', limit: 99 }, [6, 4]],
      ['nothing', { index: 'by_colour', equal: ['green'], limit: 99 }, []],
    ];
    const found = async (set: ReadModelSet, query: Query) =>
      (await set.find(ONE, 'notes', query)).map((document) => document['n']);

    it.each(queries)('returns %s', async (_, query, expected) => {
      expect(await found(shelved(), query)).toEqual(expected);
    });

    it('returns the same from a build that is not finished', async () => {
      const build = await harness.here.create(LOG);
      await advanceBy(build, 1, ...shelves);
      for (const [, query, expected] of queries) expect(await found(build, query)).toEqual(expected);
    });

    it.each([
      ['an undeclared index', { index: 'by_text', limit: 9 }],
      ['an index of another collection', { index: 'by_shelf', limit: 9 }, 'counts'],
      ['a name that every object has as a property', { index: 'constructor', limit: 9 }],
      ['more values than the index has fields', { index: 'by_colour', equal: ['red', 1], limit: 9 }],
      ['values without an index', { equal: ['red'], limit: 9 }],
    ])('refuses %s', async (_, query, collection = 'notes') => {
      await expect(shelved().find(ONE, collection, query)).rejects.toThrow();
    });
  });
};
