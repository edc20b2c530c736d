import type { Collection, Document, Query, Selection } from '../../../projections/projector';
import type { Generation, Write } from '../../../src/read-models/read-models';
import { ONE, TWO, LOG, at, put, note, gone, id, type Harness } from './harness';
import { createAndOpen } from '../../support/generations';

/** What queries return. */
export const questionsContract = (harness: Harness): void => {
  const { again, openIn, createIn, fresh, filled } = harness;

  it('queries return another token after any change, if the store has tokens', async () => {
    const [here, there] = [await createIn(harness.store.readModels), await createIn(await again())];
    const token = here.reader.changeToken;
    if (token === undefined) return;
    const seen = [token(), token()];
    expect(seen[0]).toBe(seen[1]);
    for (const [n, writer] of [here, there, here].entries()) {
      expect(await writer.commit(n, at(n + 1), [note(ONE, 'a', { shelf: 'a', place: n })])).toBe(true);
      expect(seen).not.toContain(token());
      seen.push(token());
      expect(token()).toBe(seen.at(-1));
    }
  });

  it('queries report up to where everything is shown', async () => {
    const generation = await fresh();
    const other = await openIn(await again());
    expect(await generation.reader.applied()).toBeUndefined();
    await generation.commit(0, at(5), []);
    for (const { reader } of [generation, other]) expect(await reader.applied()).toBe(at(5).position);
  });

  describe('reading', () => {
    it('loads in the order requested, including missing documents', async () => {
      const generation = await filled(
        note(ONE, 'a', { text: 'a' }),
        note(ONE, 'b', { text: 'b' }),
        note(TWO, 'a', { text: 'a of two' }),
        put(ONE, 'counts', 'a', { count: 1 }),
      );
      const key = (tenantId: string, collection: string, named: string) => ({
        tenantId,
        collection,
        key: named,
      });
      expect(
        await generation.load([
          key(ONE, 'notes', 'b'),
          key(ONE, 'notes', 'missing'),
          key(TWO, 'notes', 'a'),
          key(ONE, 'counts', 'a'),
          key(TWO, 'counts', 'a'),
          key(ONE, 'notes', 'a'),
          key(ONE, 'notes', 'b'),
        ]),
      ).toEqual([
        { text: 'b' },
        undefined,
        { text: 'a of two' },
        { count: 1 },
        undefined,
        { text: 'a' },
        { text: 'b' },
      ]);
      expect(await generation.load([])).toEqual([]);
    });

    it('does not show a removed document anywhere', async () => {
      const shelf = { shelf: 's', place: 1 };
      const generation = await filled(note(ONE, 'a', shelf), note(ONE, 'b', shelf));
      await generation.commit(1, at(2), [gone(ONE, 'notes', 'a'), gone(ONE, 'notes', 'never there')]);
      expect(await generation.reader.get(ONE, 'notes', 'a')).toBeUndefined();
      expect(await generation.load([{ tenantId: ONE, collection: 'notes', key: 'a' }])).toEqual([undefined]);
      expect(await generation.reader.find(ONE, 'notes', { limit: 9 })).toEqual([shelf]);
      expect(
        await generation.reader.find(ONE, 'notes', { index: 'by_shelf', equal: ['s'], limit: 9 }),
      ).toEqual([shelf]);
      expect((await generation.reader.scan('notes', 9)).map((row) => row.key)).toEqual(['b']);
    });

    it('shows a removed document again once it is rewritten', async () => {
      const generation = await filled(note(ONE, 'a', { text: 'first' }));
      await generation.commit(1, at(2), [gone(ONE, 'notes', 'a')]);
      await generation.commit(2, at(3), [note(ONE, 'a', { text: 'second' })]);
      expect(await generation.reader.get(ONE, 'notes', 'a')).toEqual({ text: 'second' });
      expect(await generation.reader.scan('notes', 9)).toHaveLength(1);
    });

    it('replaces a document completely', async () => {
      const generation = await filled(note(ONE, 'a', { shelf: 's', text: 'first' }));
      await generation.commit(1, at(2), [note(ONE, 'a', { colour: 'red' })]);
      expect(await generation.reader.get(ONE, 'notes', 'a')).toEqual({ colour: 'red' });
      expect(
        await generation.reader.find(ONE, 'notes', { index: 'by_shelf', equal: ['s'], limit: 9 }),
      ).toEqual([]);
    });

    it('separates tenants', async () => {
      const generation = await filled(
        note(ONE, 'same', { shelf: 's', of: 'one' }),
        note(TWO, 'same', { shelf: 's', of: 'two' }),
        note(TWO, 'other', { shelf: 's', of: 'two' }),
      );
      expect(await generation.reader.get(ONE, 'notes', 'same')).toEqual({ shelf: 's', of: 'one' });
      expect(await generation.reader.get(ONE, 'notes', 'other')).toBeUndefined();
      expect(await generation.reader.find(ONE, 'notes', { limit: 9 })).toHaveLength(1);
      expect(
        await generation.reader.find(ONE, 'notes', { index: 'by_shelf', equal: ['s'], limit: 9 }),
      ).toEqual([{ shelf: 's', of: 'one' }]);
      await generation.commit(1, at(2), [gone(ONE, 'notes', 'same')]);
      expect(await generation.reader.get(TWO, 'notes', 'same')).toEqual({ shelf: 's', of: 'two' });
    });

    it('refuses an undeclared collection', async () => {
      const generation = await fresh();
      await expect(generation.reader.get(ONE, 'nowhere', 'a')).rejects.toThrow(/nowhere/);
      await expect(generation.reader.find(ONE, 'nowhere', { limit: 1 })).rejects.toThrow(/nowhere/);
      await expect(generation.reader.scan('nowhere', 1)).rejects.toThrow(/nowhere/);
      await expect(generation.load([{ tenantId: ONE, collection: 'nowhere', key: 'a' }])).rejects.toThrow(
        /nowhere/,
      );
    });
  });

  describe('finding', () => {
    const shelves = [
      note(ONE, 'k1', { shelf: 'b', place: 10, n: 1 }),
      note(ONE, 'k2', { shelf: 'b', place: 2, n: 2 }),
      note(ONE, 'k3', { shelf: 'a', place: 7, n: 3 }),
      note(ONE, 'k5', { shelf: 'b', place: 2, n: 5 }),
      note(ONE, 'k4', { shelf: 'b', place: 2, n: 4, colour: 'red' }),
      note(ONE, 'k6', { colour: 'red', n: 6 }),
      note(ONE, 'k7', { shelf: '10', place: '2', n: 7 }),
      note(ONE, 'k8', { shelf: 10, place: 2.5, n: 8 }),
      note(TWO, 'k0', { shelf: 'b', place: 2, colour: 'red', n: 0 }),
    ];

    it.each([
      ['everything by key', { limit: 99 }, [1, 2, 3, 4, 5, 6, 7, 8]],
      ['no more than requested', { limit: 3 }, [1, 2, 3]],
      [
        'by the first field, in the order of the rest',
        { index: 'by_shelf', equal: ['b'], limit: 99 },
        [2, 4, 5, 1],
      ],
      ['by all fields', { index: 'by_shelf', equal: ['b', 2], limit: 99 }, [2, 4, 5]],
      ['by all fields, limited', { index: 'by_shelf', equal: ['b', 2], limit: 2 }, [2, 4]],
      [
        'in the order of the index, numbers before text, without documents that lack the first field',
        { index: 'by_shelf', limit: 99 },
        [8, 7, 3, 2, 4, 5, 1],
      ],
      ['by a number, which is not text', { index: 'by_shelf', equal: [10], limit: 99 }, [8]],
      ['by text, which is not a number', { index: 'by_shelf', equal: ['10'], limit: 99 }, [7]],
      ['by a fraction', { index: 'by_shelf', equal: [10, 2.5], limit: 99 }, [8]],
      ['by another index', { index: 'by_colour', equal: ['red'], limit: 99 }, [4, 6]],
      ['nothing', { index: 'by_colour', equal: ['blue'], limit: 99 }, []],
    ])('returns %s', async (_, query, expected) => {
      const generation = await filled(...shelves);
      const found = await generation.reader.find(ONE, 'notes', query);
      expect(found.map((document) => document['n'])).toEqual(expected);
    });

    it.each([
      ['an undeclared index', { index: 'by_text', limit: 9 }],
      ['an index of another collection', { index: 'by_shelf', limit: 9 }, 'counts'],
      ['a name that every object has as a property', { index: 'constructor', limit: 9 }],
      ['more values than the index has fields', { index: 'by_colour', equal: ['red', 1], limit: 9 }],
      ['values without an index', { equal: ['red'], limit: 9 }],
    ])('refuses %s', async (_, query, collection = 'notes') => {
      const generation = await filled(...shelves);
      await expect(generation.reader.find(ONE, collection, query)).rejects.toThrow();
    });

    it('tracks a document whose indexed fields change', async () => {
      const generation = await filled(...shelves);
      await generation.commit(1, at(2), [note(ONE, 'k1', { shelf: 'c', place: 1, n: 1 })]);
      const on = async (shelf: string) =>
        (await generation.reader.find(ONE, 'notes', { index: 'by_shelf', equal: [shelf], limit: 9 })).length;
      expect(await on('b')).toBe(3);
      expect(await on('c')).toBe(1);
    });
  });

  describe('finding a range of an index', () => {
    const red = { colour: 'red' };
    const blue = { colour: 'blue' };
    const collected: readonly Collection[] = [
      {
        name: 'cards',
        indexes: { by_box: ['box', 'number', 'colour'], by_number: ['number'], by_colour: ['colour'] },
      },
    ];
    const card = (tenantId: string, key: string, document: Document): Write =>
      put(tenantId, 'cards', key, document);
    /** Box x holds the numbers 1 to 6, every second one red; number 9 is there twice; box y is as long as x. */
    const cards = [
      ...[6, 1, 5, 2, 4, 3].map((number) =>
        card(ONE, `x${number}`, { box: 'x', number, ...(number % 2 === 0 ? red : blue), id: `x${number}` }),
      ),
      card(ONE, 'x9a', { box: 'x', number: 9, ...red, id: 'x9a' }),
      card(ONE, 'x9b', { box: 'x', number: 9, ...red, id: 'x9b' }),
      ...[1, 2, 3].map((number) => card(ONE, `y${number}`, { box: 'y', number, ...red, id: `y${number}` })),
      card(ONE, 'z1', { box: 'z', id: 'z1' }),
      ...[1, 2, 3].map((number) =>
        card(TWO, `x${number}`, { box: 'x', number, ...red, id: `other ${number}` }),
      ),
    ];
    const x = { index: 'by_box', equal: ['x'] } as const;
    let generation: Generation;
    beforeEach(async () => {
      generation = await createAndOpen(harness.store.readModels, id('cards'), collected, LOG);
      expect(await generation.commit(0, at(1), cards)).toBe(true);
    });
    const idsOf = (found: readonly Document[]) => found.map((document) => document['id']);

    it.each<[string, Selection, readonly string[]]>([
      ['a range from a value, inclusive', { ...x, from: 4 }, ['x4', 'x5', 'x6', 'x9a', 'x9b']],
      ['a range up to a value, inclusive', { ...x, upTo: 3 }, ['x1', 'x2', 'x3']],
      ['a range between two values', { ...x, from: 2, upTo: 4 }, ['x2', 'x3', 'x4']],
      ['a single value', { ...x, from: 5, upTo: 5 }, ['x5']],
      ['a value that occurs twice', { ...x, from: 9, upTo: 9 }, ['x9a', 'x9b']],
      ['nothing between two values that do not occur', { ...x, from: 6.5, upTo: 8 }, []],
      ['nothing if the ends are swapped', { ...x, from: 4, upTo: 3 }, []],
      ['a range from zero', { ...x, from: 0, upTo: 1 }, ['x1']],
      [
        'a range of the first field',
        { index: 'by_box', from: 'x', upTo: 'y' },
        ['x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'x9a', 'x9b', 'y1', 'y2', 'y3'],
      ],
      ['a range of text', { index: 'by_box', from: 'xx', upTo: 'z' }, ['y1', 'y2', 'y3', 'z1']],
      ['a range of keys', { from: 'x6', upTo: 'y1' }, ['x6', 'x9a', 'x9b', 'y1']],
      ['a range of the last field', { index: 'by_box', equal: ['x', 2], from: 'red' }, ['x2']],
      ['a range after all fields, by key', { index: 'by_box', equal: ['x', 9, 'red'], from: 'x9b' }, ['x9b']],
      ['no document without the field in a range', { index: 'by_number', upTo: 1 }, ['x1', 'y1']],
      [
        'no document without the first field of the index',
        { index: 'by_colour' },
        ['x1', 'x3', 'x5', 'x2', 'x4', 'x6', 'x9a', 'x9b', 'y1', 'y2', 'y3'],
      ],
    ])('returns %s, in both orders, and limited', async (_, selection, expected) => {
      const find = async (more: Omit<Query, keyof Selection>) =>
        idsOf(await generation.reader.find(ONE, 'cards', { ...selection, ...more }));
      const backwards = expected.toReversed();
      expect(await find({ limit: 99 })).toEqual(expected);
      expect(await find({ limit: 99, descending: false })).toEqual(expected);
      expect(await find({ limit: 99, descending: true })).toEqual(backwards);
      expect(await find({ limit: 2 })).toEqual(expected.slice(0, 2));
      expect(await find({ limit: 2, descending: true })).toEqual(backwards.slice(0, 2));
    });

    it('returns everything without a selection', async () => {
      const all = async (tenantId: string) =>
        (await generation.reader.find(tenantId, 'cards', { limit: 99 })).length;
      expect([await all(ONE), await all(TWO)]).toEqual([12, 3]);
      const last = await generation.reader.find(ONE, 'cards', { limit: 2, descending: true });
      expect(idsOf(last)).toEqual(['z1', 'y3']);
    });

    it('finds nothing for a tenant without documents', async () => {
      const stranger = '33333333-3333-4333-8333-333333333333';
      expect(await generation.reader.find(stranger, 'cards', { ...x, from: 1, limit: 9 })).toEqual([]);
    });

    it('reflects changes and removals', async () => {
      await generation.commit(1, at(2), [
        gone(ONE, 'cards', 'x1'),
        card(ONE, 'x2', { box: 'y', number: 2, ...red, id: 'x2' }),
        card(ONE, 'x7', { box: 'x', number: 7, ...blue, id: 'x7' }),
        card(ONE, 'x6', { box: 'x', id: 'x6' }),
      ]);
      const found = async (index: string, box: string) =>
        idsOf(await generation.reader.find(ONE, 'cards', { index, equal: [box], limit: 99 }));
      const inX = ['x3', 'x4', 'x5', 'x7', 'x9a', 'x9b'];
      expect(new Set(await found('by_box', 'x'))).toEqual(new Set(['x6', ...inX]));
      expect(await found('by_box', 'y')).toEqual(['y1', 'x2', 'y2', 'y3']);
    });
  });
};
