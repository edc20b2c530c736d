import type { Collection, Document, LinePart, Query, Selection } from '../../projections/projector';
import {
  PARKED,
  STREAMS,
  type Checkpoint,
  type Generation,
  type GenerationId,
  type Lying,
  type ReadModels,
  type Stretch,
  type Write,
} from '../../src/read-models/read-models';

/** A fresh, empty store, and what the suite does to it. */
export interface StoreUnderTest {
  readonly readModels: ReadModels;
  /** Opens the same store once more, as another process would. The suite closes what it gets. */
  reopen(): Promise<ReadModels>;
  /** Counts write points from now on and makes the k-th of them fail, once. */
  failAt(k: number): void;
  /** How many write points were reached since then, the failing one included. */
  reached(): number;
  /** Are all its declared indexes there? */
  isIndexed(id: GenerationId): Promise<boolean>;
}

const LOG = '7d0d0c0e-7f0b-4f4e-8c59-6a2f3f1e9a01';
const ONE = '11111111-1111-4111-8111-111111111111';
const TWO = '22222222-2222-4222-8222-222222222222';

const collections: readonly Collection[] = [
  {
    name: 'notes',
    indexes: { by_shelf: ['shelf', 'place'], by_colour: ['colour'] },
    lines: { on_shelf: { equal: ['shelf'], number: 'place', borders: ['moment'] } },
  },
  { name: 'counts', indexes: {} },
];

const id = (projection: string, version = 1, generation = 1): GenerationId => ({
  projection,
  version,
  generation,
});

const at = (position: number): Checkpoint => ({
  position: String(position).padStart(16, '0'),
  eventId: `00000000-0000-4000-8000-${String(position).padStart(12, '0')}`,
});

const put = (tenantId: string, collection: string, key: string, document: Document): Write => ({
  tenantId,
  collection,
  key,
  document,
});
const note = (tenantId: string, key: string, document: Document): Write =>
  put(tenantId, 'notes', key, document);
const gone = (tenantId: string, collection: string, key: string): Write => ({
  tenantId,
  collection,
  key,
  document: undefined,
});

/** Everything that can be seen of a generation. The control state is read first: that settles a half-done commit. */
const stateOf = async (generation: Generation) => {
  const control = await generation.control();
  const documents = [];
  for (const collection of ['notes', 'counts', PARKED, STREAMS])
    for (const row of await generation.scan(collection, 1_000)) documents.push([collection, row]);
  const found = await Promise.all(
    [ONE, TWO].map((tenant) => generation.find(tenant, 'notes', { index: 'by_shelf', limit: 1_000 })),
  );
  return { control, documents, found };
};

/** The old state of the failure cases, and the commit that leads to the new one. */
const before: readonly Write[] = [
  note(ONE, 'kept', { shelf: 'a', place: 1 }),
  note(ONE, 'changed', { shelf: 'a', place: 2, text: 'old' }),
  note(ONE, 'removed', { shelf: 'a', place: 3 }),
  put(ONE, 'counts', 'all', { count: 3 }),
  put(TWO, 'counts', 'removed', { count: 1 }),
  put(TWO, PARKED, 'tenant', { reason: 'old' }),
  put(ONE, STREAMS, 'tenant', { revision: 1 }),
];
const change: readonly Write[] = [
  note(ONE, 'changed', { shelf: 'b', place: 2, text: 'new' }),
  note(ONE, 'added', { shelf: 'b', place: 1 }),
  gone(ONE, 'notes', 'removed'),
  put(ONE, 'counts', 'all', { count: 4 }),
  gone(TWO, 'counts', 'removed'),
  put(ONE, PARKED, 'tenant', { reason: 'new' }),
  gone(TWO, PARKED, 'tenant'),
  put(ONE, STREAMS, 'tenant', { revision: 2 }),
  put(TWO, STREAMS, 'activity', { revision: 0 }),
];

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** One suite for every adapter: each promise of `src/read-models/read-models.ts` is asked for. */
export const readModelsContract = (name: string, open: () => Promise<StoreUnderTest>): void => {
  describe(`read models in ${name}`, () => {
    let store: StoreUnderTest;
    let opened: ReadModels[] = [];

    beforeEach(async () => {
      store = await open();
      opened = [store.readModels];
    });
    afterEach(async () => {
      for (const readModels of opened) await readModels.close();
    });

    const again = async (): Promise<ReadModels> => {
      const readModels = await store.reopen();
      opened.push(readModels);
      return readModels;
    };
    const openIn = (readModels: ReadModels, generation = id('notes')) =>
      readModels.open(generation, collections, LOG);
    const fresh = () => openIn(store.readModels);
    const filled = async (...writes: Write[]) => {
      const generation = await fresh();
      expect(await generation.commit(0, at(1), writes)).toBe(true);
      return generation;
    };

    it('tells with another number that it has changed, if it can tell at all', async () => {
      const [here, there] = [await openIn(store.readModels), await openIn(await again())];
      if (here.version === undefined) return;
      const seen = [here.version(), here.version()];
      expect(seen[0]).toBe(seen[1]);
      for (const [n, writer] of [here, there, here].entries()) {
        expect(await writer.commit(n, at(n + 1), [note(ONE, 'a', { shelf: 'a', place: n })])).toBe(true);
        expect(seen).not.toContain(here.version());
        seen.push(here.version());
        expect(here.version()).toBe(seen.at(-1));
      }
    });

    describe('a generation', () => {
      it('begins empty and bound to its log', async () => {
        const generation = await fresh();
        expect(await generation.control()).toEqual({ n: 0, log: LOG });
        expect(await stateOf(generation)).toMatchObject({ documents: [], found: [[], []] });
        expect(generation.id).toEqual(id('notes'));
      });

      it('is not emptied by being opened again, and stays bound to its first log', async () => {
        const generation = await filled(note(ONE, 'a', { text: 'kept' }));
        const other = await (await again()).open(id('notes'), collections, 'another log');
        expect(await stateOf(other)).toEqual(await stateOf(generation));
        expect((await other.control()).log).toBe(LOG);
      });

      it('may be opened twice in one process: both stay usable', async () => {
        const first = await fresh();
        const second = await fresh();
        expect(await first.commit(0, at(1), [note(ONE, 'a', { text: 'first' })])).toBe(true);
        expect(await second.commit(1, at(2), [note(ONE, 'b', { text: 'second' })])).toBe(true);
        expect(await stateOf(first)).toEqual(await stateOf(second));
      });

      it('is opened by two at once', async () => {
        const other = await again();
        const [one, two] = await Promise.all([openIn(store.readModels), openIn(other)]);
        expect(await one.commit(0, at(1), [note(ONE, 'a', { text: 'a' })])).toBe(true);
        expect(await stateOf(two)).toEqual(await stateOf(one));
      });

      it('shares nothing with other versions and generations', async () => {
        const ids = [id('notes'), id('notes', 1, 2), id('notes', 2), id('tags')];
        const all = await Promise.all(ids.map((one) => openIn(store.readModels, one)));
        for (const [i, generation] of all.entries())
          expect(await generation.commit(0, at(i + 1), [note(ONE, 'a', { i })])).toBe(true);
        for (const [i, generation] of all.entries()) {
          expect(await generation.get(ONE, 'notes', 'a')).toEqual({ i });
          expect((await generation.control()).to).toEqual(at(i + 1));
        }
      });

      it('is listed', async () => {
        expect(await store.readModels.generations()).toEqual([]);
        const ids = [id('notes'), id('notes', 1, 2), id('notes', 12, 10), id('more_notes')];
        for (const one of ids) await openIn(store.readModels, one);
        const listed = await (await again()).generations();
        expect(listed).toHaveLength(ids.length);
        expect(listed).toEqual(expect.arrayContaining(ids));
      });
    });

    describe('a commit', () => {
      it('writes all documents and moves the control state', async () => {
        const generation = await filled(...before);
        expect(await generation.control()).toEqual({
          n: 1,
          to: at(1),
          applied: at(1).position,
          log: LOG,
        });
        expect(await generation.commit(1, at(7), change)).toBe(true);
        expect(await generation.control()).toMatchObject({ n: 2, to: at(7), applied: at(7).position });
        expect(await generation.get(ONE, 'notes', 'changed')).toEqual({ shelf: 'b', place: 2, text: 'new' });
        expect(await generation.get(ONE, 'notes', 'removed')).toBeUndefined();
        expect(await generation.get(ONE, 'notes', 'kept')).toEqual({ shelf: 'a', place: 1 });
        expect(await generation.get(ONE, PARKED, 'tenant')).toEqual({ reason: 'new' });
      });

      it('without a checkpoint counts, and stays where it was', async () => {
        const generation = await filled(...before);
        expect(await generation.commit(1, undefined, [gone(TWO, PARKED, 'tenant')])).toBe(true);
        expect(await generation.control()).toMatchObject({ n: 2, to: at(1), applied: at(1).position });
      });

      it('without documents moves the control state', async () => {
        const generation = await fresh();
        expect(await generation.commit(0, at(5), [])).toBe(true);
        expect(await generation.control()).toMatchObject({ n: 1, to: at(5) });
      });

      it.each([0, 2, 99])('is refused when %i is not the current n', async (n) => {
        const generation = await filled(...before);
        const state = await stateOf(generation);
        expect(await generation.commit(n, at(9), change)).toBe(false);
        expect(await stateOf(generation)).toEqual(state);
      });

      it('wins alone among many at the same n', async () => {
        const others = [store.readModels, await again(), await again()];
        const generations = await Promise.all(others.map((one) => openIn(one)));
        for (let n = 0; n < 10; n++) {
          const outcomes = await Promise.all(
            generations.flatMap((generation, i) =>
              [0, 1].map((j) =>
                generation.commit(n, at(10 * n + 2 * i + j), [
                  note(ONE, 'winner', { who: `${i} ${j}` }),
                  note(TWO, `winner ${n}`, { who: `${i} ${j}` }),
                ]),
              ),
            ),
          );
          expect(outcomes.filter(Boolean)).toHaveLength(1);
          const winner = outcomes.indexOf(true);
          const who = `${Math.floor(winner / 2)} ${winner % 2}`;
          const control = await generations[0]!.control();
          expect(control).toMatchObject({ n: n + 1, to: at(10 * n + winner) });
          expect(await generations[1]!.get(ONE, 'notes', 'winner')).toEqual({ who });
          expect(await generations[2]!.get(TWO, 'notes', `winner ${n}`)).toEqual({ who });
        }
      });

      it('with an unknown collection writes nothing', async () => {
        const generation = await filled(...before);
        const state = await stateOf(generation);
        await expect(generation.commit(1, at(2), [...change, put(ONE, 'nowhere', 'a', {})])).rejects.toThrow(
          /nowhere/,
        );
        expect(await stateOf(generation)).toEqual(state);
      });

      it('of thousands of documents is one step', async () => {
        const generation = await fresh();
        const many = Array.from({ length: 3_000 }, (_, i) =>
          note(ONE, `n${i}`, { i, shelf: 'x'.repeat(50) }),
        );
        expect(await generation.commit(0, at(1), many)).toBe(true);
        expect(await generation.find(ONE, 'notes', { limit: 10_000 })).toHaveLength(3_000);
      });

      it('survives that the store is opened again', async () => {
        const generation = await filled(...before);
        await generation.commit(1, at(2), change);
        const state = await stateOf(generation);
        await store.readModels.close();
        opened = [];
        expect(await stateOf(await openIn(await again()))).toEqual(state);
      });
    });

    it('a failure at any write point leaves the old state or the new one', async () => {
      const generationOf = async (number: number) => {
        const generation = await openIn(store.readModels, id('notes', 1, number));
        await generation.commit(0, at(1), before);
        return generation;
      };
      const whole = await generationOf(1);
      const oldState = await stateOf(whole);
      store.failAt(Number.POSITIVE_INFINITY);
      expect(await whole.commit(1, at(2), change)).toBe(true);
      const points = store.reached();
      const newState = await stateOf(whole);
      // At least one for each collection and one for the control state.
      expect(points).toBeGreaterThanOrEqual(4);

      let hit = 0;
      for (let k = 1; k <= points; k++) {
        const generation = await generationOf(1 + k);
        store.failAt(k);
        const outcome = await generation.commit(1, at(2), change).catch(() => 'failed');
        if (store.reached() >= k) hit += 1;
        expect([true, 'failed']).toContain(outcome);
        store.failAt(Number.POSITIVE_INFINITY);

        const elsewhere = await openIn(await again(), generation.id);
        const state = await stateOf(elsewhere);
        const isNew = state.control.n === newState.control.n;
        expect(state).toEqual(isNew ? newState : oldState);
        if (outcome === true) expect(isNew).toBe(true);
        expect(await stateOf(generation)).toEqual(state);

        expect(await generation.commit(1, at(2), change)).toBe(!isNew);
        expect(await stateOf(generation)).toEqual(newState);
        expect(await generation.commit(2, at(3), [])).toBe(true);
      }
      expect(hit).toBe(points);
    });

    describe('reading', () => {
      it('loads in the order asked for, with the missing ones', async () => {
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
        expect(await generation.get(ONE, 'notes', 'a')).toBeUndefined();
        expect(await generation.load([{ tenantId: ONE, collection: 'notes', key: 'a' }])).toEqual([
          undefined,
        ]);
        expect(await generation.find(ONE, 'notes', { limit: 9 })).toEqual([shelf]);
        expect(await generation.find(ONE, 'notes', { index: 'by_shelf', equal: ['s'], limit: 9 })).toEqual([
          shelf,
        ]);
        expect((await generation.scan('notes', 9)).map((row) => row.key)).toEqual(['b']);
      });

      it('shows a removed document that was written again', async () => {
        const generation = await filled(note(ONE, 'a', { text: 'first' }));
        await generation.commit(1, at(2), [gone(ONE, 'notes', 'a')]);
        await generation.commit(2, at(3), [note(ONE, 'a', { text: 'second' })]);
        expect(await generation.get(ONE, 'notes', 'a')).toEqual({ text: 'second' });
        expect(await generation.scan('notes', 9)).toHaveLength(1);
      });

      it('replaces a document wholly', async () => {
        const generation = await filled(note(ONE, 'a', { shelf: 's', text: 'first' }));
        await generation.commit(1, at(2), [note(ONE, 'a', { colour: 'red' })]);
        expect(await generation.get(ONE, 'notes', 'a')).toEqual({ colour: 'red' });
        expect(await generation.find(ONE, 'notes', { index: 'by_shelf', equal: ['s'], limit: 9 })).toEqual(
          [],
        );
      });

      it('keeps tenants apart', async () => {
        const generation = await filled(
          note(ONE, 'same', { shelf: 's', of: 'one' }),
          note(TWO, 'same', { shelf: 's', of: 'two' }),
          note(TWO, 'other', { shelf: 's', of: 'two' }),
        );
        expect(await generation.get(ONE, 'notes', 'same')).toEqual({ shelf: 's', of: 'one' });
        expect(await generation.get(ONE, 'notes', 'other')).toBeUndefined();
        expect(await generation.find(ONE, 'notes', { limit: 9 })).toHaveLength(1);
        expect(await generation.find(ONE, 'notes', { index: 'by_shelf', equal: ['s'], limit: 9 })).toEqual([
          { shelf: 's', of: 'one' },
        ]);
        await generation.commit(1, at(2), [gone(ONE, 'notes', 'same')]);
        expect(await generation.get(TWO, 'notes', 'same')).toEqual({ shelf: 's', of: 'two' });
      });

      it('refuses a collection that is not declared', async () => {
        const generation = await fresh();
        await expect(generation.get(ONE, 'nowhere', 'a')).rejects.toThrow(/nowhere/);
        await expect(generation.find(ONE, 'nowhere', { limit: 1 })).rejects.toThrow(/nowhere/);
        await expect(generation.scan('nowhere', 1)).rejects.toThrow(/nowhere/);
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
        ['no more than asked for', { limit: 3 }, [1, 2, 3]],
        [
          'by the first field, in the order of the rest',
          { index: 'by_shelf', equal: ['b'], limit: 99 },
          [2, 4, 5, 1],
        ],
        ['by all fields', { index: 'by_shelf', equal: ['b', 2], limit: 99 }, [2, 4, 5]],
        ['by all fields, limited', { index: 'by_shelf', equal: ['b', 2], limit: 2 }, [2, 4]],
        [
          'in the order of the index, numbers before text, what has no first field left out',
          { index: 'by_shelf', limit: 99 },
          [8, 7, 3, 2, 4, 5, 1],
        ],
        ['by a number, which is not text', { index: 'by_shelf', equal: [10], limit: 99 }, [8]],
        ['by text, which is not a number', { index: 'by_shelf', equal: ['10'], limit: 99 }, [7]],
        ['by a fraction', { index: 'by_shelf', equal: [10, 2.5], limit: 99 }, [8]],
        ['by another index', { index: 'by_colour', equal: ['red'], limit: 99 }, [4, 6]],
        ['nothing', { index: 'by_colour', equal: ['blue'], limit: 99 }, []],
      ])('gives %s', async (_, query, expected) => {
        const generation = await filled(...shelves);
        const found = await generation.find(ONE, 'notes', query);
        expect(found.map((document) => document['n'])).toEqual(expected);
      });

      it.each([
        ['an index that is not declared', { index: 'by_text', limit: 9 }],
        ['an index of another collection', { index: 'by_shelf', limit: 9 }, 'counts'],
        ['a property that every object has', { index: 'constructor', limit: 9 }],
        ['more values than the index has fields', { index: 'by_colour', equal: ['red', 1], limit: 9 }],
        ['values without an index', { equal: ['red'], limit: 9 }],
      ])('refuses %s', async (_, query, collection = 'notes') => {
        const generation = await filled(...shelves);
        await expect(generation.find(ONE, collection, query)).rejects.toThrow();
      });

      it('follows a document whose indexed fields change', async () => {
        const generation = await filled(...shelves);
        await generation.commit(1, at(2), [note(ONE, 'k1', { shelf: 'c', place: 1, n: 1 })]);
        const on = async (shelf: string) =>
          (await generation.find(ONE, 'notes', { index: 'by_shelf', equal: [shelf], limit: 9 })).length;
        expect(await on('b')).toBe(3);
        expect(await on('c')).toBe(1);
      });
    });

    describe('finding a stretch of an index', () => {
      const red = { colour: 'red' };
      const blue = { colour: 'blue' };
      const collected: readonly Collection[] = [
        {
          name: 'cards',
          indexes: { by_box: ['box', 'number', 'colour'], by_number: ['number'], by_colour: ['colour'] },
          lines: { in_box: { equal: ['box'], number: 'number', borders: [] } },
        },
      ];
      const card = (tenantId: string, key: string, document: Document): Write =>
        put(tenantId, 'cards', key, document);
      /** In box x the numbers 1 to 6, every second one red; number 9 stands there twice; box y is as long as x. */
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
        generation = await store.readModels.open(id('cards'), collected, LOG);
        expect(await generation.commit(0, at(1), cards)).toBe(true);
      });
      const idsOf = (found: readonly Document[]) => found.map((document) => document['id']);

      it.each<[string, Selection, readonly string[]]>([
        ['from a value on, which belongs to it', { ...x, from: 4 }, ['x4', 'x5', 'x6', 'x9a', 'x9b']],
        ['up to a value, which belongs to it', { ...x, upTo: 3 }, ['x1', 'x2', 'x3']],
        ['between two values', { ...x, from: 2, upTo: 4 }, ['x2', 'x3', 'x4']],
        ['at one value', { ...x, from: 5, upTo: 5 }, ['x5']],
        ['at a value that is there twice', { ...x, from: 9, upTo: 9 }, ['x9a', 'x9b']],
        ['between values that are not there', { ...x, from: 6.5, upTo: 8 }, []],
        ['nothing where the ends are crossed', { ...x, from: 4, upTo: 3 }, []],
        ['from zero', { ...x, from: 0, upTo: 1 }, ['x1']],
        [
          'a range of the first field',
          { index: 'by_box', from: 'x', upTo: 'y' },
          ['x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'x9a', 'x9b', 'y1', 'y2', 'y3'],
        ],
        ['a range of text', { index: 'by_box', from: 'xx', upTo: 'z' }, ['y1', 'y2', 'y3', 'z1']],
        ['a range of keys', { from: 'x6', upTo: 'y1' }, ['x6', 'x9a', 'x9b', 'y1']],
        ['a range of the last field', { index: 'by_box', equal: ['x', 2], from: 'red' }, ['x2']],
        [
          'a range after all fields, by key',
          { index: 'by_box', equal: ['x', 9, 'red'], from: 'x9b' },
          ['x9b'],
        ],
        ['no document without the field in a range', { index: 'by_number', upTo: 1 }, ['x1', 'y1']],
        [
          'no document without the first field of the index',
          { index: 'by_colour' },
          ['x1', 'x3', 'x5', 'x2', 'x4', 'x6', 'x9a', 'x9b', 'y1', 'y2', 'y3'],
        ],
        ['a line', { index: 'in_box', equal: ['y'] }, ['y1', 'y2', 'y3']],
        ['a range of a line', { index: 'in_box', equal: ['x'], from: 2, upTo: 4 }, ['x2', 'x3', 'x4']],
        ['no document without a number in a line', { index: 'in_box', equal: ['z'] }, []],
      ])('gives %s, in both orders, and limited', async (_, selection, expected) => {
        const find = async (more: Omit<Query, keyof Selection>) =>
          idsOf(await generation.find(ONE, 'cards', { ...selection, ...more }));
        const backwards = expected.toReversed();
        expect(await find({ limit: 99 })).toEqual(expected);
        expect(await find({ limit: 99, descending: false })).toEqual(expected);
        expect(await find({ limit: 99, descending: true })).toEqual(backwards);
        expect(await find({ limit: 2 })).toEqual(expected.slice(0, 2));
        expect(await find({ limit: 2, descending: true })).toEqual(backwards.slice(0, 2));
      });

      it('gives everything without a selection', async () => {
        const all = async (tenantId: string) =>
          (await generation.find(tenantId, 'cards', { limit: 99 })).length;
        expect([await all(ONE), await all(TWO)]).toEqual([12, 3]);
        const last = await generation.find(ONE, 'cards', { limit: 2, descending: true });
        expect(idsOf(last)).toEqual(['z1', 'y3']);
      });

      it('finds nothing of a tenant that has no documents', async () => {
        const stranger = '33333333-3333-4333-8333-333333333333';
        expect(await generation.find(stranger, 'cards', { ...x, from: 1, limit: 9 })).toEqual([]);
      });

      it('gives what is there after changes and removals', async () => {
        await generation.commit(1, at(2), [
          gone(ONE, 'cards', 'x1'),
          card(ONE, 'x2', { box: 'y', number: 2, ...red, id: 'x2' }),
          card(ONE, 'x7', { box: 'x', number: 7, ...blue, id: 'x7' }),
          card(ONE, 'x6', { box: 'x', id: 'x6' }),
        ]);
        const found = async (index: string, box: string) =>
          idsOf(await generation.find(ONE, 'cards', { index, equal: [box], limit: 99 }));
        const inX = ['x3', 'x4', 'x5', 'x7', 'x9a', 'x9b'];
        expect(new Set(await found('by_box', 'x'))).toEqual(new Set(['x6', ...inX]));
        expect(await found('in_box', 'x')).toEqual(inX);
        expect(await found('by_box', 'y')).toEqual(['y1', 'x2', 'y2', 'y3']);
      });
    });

    describe('a key or an indexed value', () => {
      const odd = [
        'a',
        'a\u0000',
        'a\u0000b',
        'a\u0000c',
        '\u0000',
        '\u0001',
        '\u0001\u0001',
        '\u0001\u0002',
        'a\ud800',
        'a\ud801',
        'a\udc00b',
        '\ufffd',
        '😀',
      ];

      it('is any text, and each one is another', async () => {
        const generation = await filled(...odd.map((text) => note(ONE, text, { text, shelf: text })));
        const keys = odd.map((key) => ({ tenantId: ONE, collection: 'notes', key }));
        expect((await generation.load(keys)).map((document) => document?.['text'])).toEqual(odd);
        for (const text of odd) {
          expect(await generation.get(ONE, 'notes', text)).toEqual({ text, shelf: text });
          expect(await generation.find(ONE, 'notes', { index: 'by_shelf', equal: [text], limit: 9 })).toEqual(
            [{ text, shelf: text }],
          );
        }
        const rows = [];
        for (let page = await generation.scan('notes', 2); page.length > 0;) {
          rows.push(...page);
          page = await generation.scan('notes', 2, page.at(-1));
        }
        expect(new Set(rows.map(({ key }) => key))).toEqual(new Set(odd));
        expect(rows).toHaveLength(odd.length);
        await generation.commit(1, at(2), [gone(ONE, 'notes', 'a\u0000b')]);
        expect(await generation.get(ONE, 'notes', 'a\u0000b')).toBeUndefined();
        expect(await generation.get(ONE, 'notes', 'a')).toBeDefined();
      });
    });

    describe('scanning', () => {
      it('pages over all tenants in the order of tenant and key', async () => {
        const keys = ['b', 'a', 'ä', 'Z', '10', '9', 'a b', '😀', '％'];
        const tenants = [TWO, ONE];
        const generation = await filled(
          ...tenants.flatMap((tenant) => keys.map((key) => note(tenant, key, { of: tenant, key }))),
        );
        const inOrder = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
        const expected = [ONE, TWO].flatMap((tenantId) =>
          inOrder.map((key) => ({ tenantId, key, document: { of: tenantId, key } })),
        );
        for (const limit of [1, 4, 18, 100]) {
          const rows = [];
          let page = await generation.scan('notes', limit);
          while (page.length > 0) {
            expect(page.length).toBeLessThanOrEqual(limit);
            rows.push(...page);
            page = await generation.scan('notes', limit, page.at(-1));
          }
          expect(rows).toEqual(expected);
        }
      });

      it('shows a document under the empty key', async () => {
        const generation = await filled(note(ONE, '', { key: '' }), note(ONE, 'a', {}), note(TWO, '', {}));
        const found = async (limit: number) => {
          const rows = [];
          for (let page = await generation.scan('notes', limit); page.length > 0;) {
            rows.push(...page.map(({ tenantId, key }) => [tenantId, key]));
            page = await generation.scan('notes', limit, page.at(-1));
          }
          return rows;
        };
        for (const limit of [1, 2, 9])
          expect(await found(limit)).toEqual([
            [ONE, ''],
            [ONE, 'a'],
            [TWO, ''],
          ]);
      });

      it('goes on after a document that was removed meanwhile', async () => {
        const generation = await filled(...['a', 'b', 'c'].map((key) => note(ONE, key, { key })));
        await generation.commit(1, at(2), [gone(ONE, 'notes', 'b')]);
        const rest = await generation.scan('notes', 9, { tenantId: ONE, key: 'b' });
        expect(rest.map((row) => row.key)).toEqual(['c']);
      });

      it('shows the parked tenants', async () => {
        const generation = await filled(put(TWO, PARKED, 'tenant', { reason: 'r' }));
        expect(await generation.scan(PARKED, 9)).toEqual([
          { tenantId: TWO, key: 'tenant', document: { reason: 'r' } },
        ]);
      });
    });

    describe('counting what comes before a border', () => {
      const borders = ['1', '3', '3', '3', '5', '8', '8'];
      const line = (last: number, equal?: readonly string[]) => ({
        line: 'on_shelf',
        equal: equal ?? ['x'],
        last,
        border: 'moment',
      });

      it('is what looking at each one would say', async () => {
        const on = (tenant: string, shelf: string) =>
          borders.map((moment, i) => note(tenant, `${shelf}${i}`, { shelf, place: i + 1, moment }));
        const later = borders.map((moment, i) =>
          note(TWO, `x${i}`, { shelf: 'x', place: i + 1, moment: `9${moment}` }),
        );
        const generation = await filled(...on(ONE, 'x'), ...on(ONE, 'y').slice(0, 2), ...later);
        for (const value of ['', '0', '1', '2', '3', '4', '5', '6', '8', '9'])
          for (let last = 0; last <= borders.length; last += 1) {
            const expected = borders.slice(0, last).filter((moment) => moment < value).length;
            expect(await generation.countBefore(ONE, 'notes', line(last), value)).toBe(expected);
            for (let first = 1; first <= last + 1; first += 1)
              expect(await generation.countBefore(ONE, 'notes', { ...line(last), first }, value)).toBe(
                Math.max(first - 1, expected),
              );
          }
        expect(await generation.countBefore(ONE, 'notes', line(2, ['y']), '9')).toBe(2);
        expect(await generation.countBefore(TWO, 'notes', line(7), '9')).toBe(0);
        expect(await generation.countBefore('nobody', 'notes', line(7), '9')).toBe(0);
      });

      it('refuses a line with a gap', async () => {
        const generation = await filled(note(ONE, 'a', { shelf: 'x', place: 2, moment: '1' }));
        await expect(generation.countBefore(ONE, 'notes', line(2), '1')).rejects.toThrow(/missing/);
      });

      it.each<[string, Partial<LinePart>, string?]>([
        ['a line that is not declared', { line: 'by_nothing' }],
        ['an index that is no line', { line: 'by_shelf' }],
        ['a property that every object has', { line: 'constructor' }],
        ['a border that is not declared', { border: 'place' }],
        ['too few values', { equal: [] }],
        ['too many values', { equal: ['x', 1] }],
        ['a collection without lines', {}, 'counts'],
        ['a collection that is not declared', {}, 'nowhere'],
      ])('refuses %s', async (_, part, collection = 'notes') => {
        const generation = await filled(note(ONE, 'a', { shelf: 'x', place: 1, moment: '1' }));
        await expect(generation.countBefore(ONE, collection, { ...line(1), ...part }, '1')).rejects.toThrow();
      });
    });

    describe('a commit that is put off', () => {
      const keyOf = (key: string) => ({ tenantId: ONE, collection: 'notes', key });

      it('is seen at once by who made it, and by others when it is settled', async () => {
        const generation = await filled(note(ONE, 'a', { v: 1 }));
        const other = await openIn(await again());
        expect(await generation.commit(1, at(2), [note(ONE, 'a', { v: 2 })], true)).toBe(true);
        expect(
          await generation.commit(2, at(3), [note(ONE, 'b', { v: 3 }), note(TWO, 'a', { v: 3 })], true),
        ).toBe(true);
        expect(await generation.load([keyOf('a'), keyOf('b'), keyOf('c')])).toEqual([
          { v: 2 },
          { v: 3 },
          undefined,
        ]);
        await generation.settle();
        expect(await other.load([keyOf('a'), keyOf('b')])).toEqual([{ v: 2 }, { v: 3 }]);
        expect(await other.control()).toMatchObject({ n: 3, to: at(3), applied: at(3).position });
        expect(await generation.get(TWO, 'notes', 'a')).toEqual({ v: 3 });
      });

      it('is settled by the next one that is not, and by asking for the control state', async () => {
        const generation = await fresh();
        const other = await openIn(await again());
        await generation.commit(0, at(1), [note(ONE, 'a', { v: 1 })], true);
        const settling = generation.commit(1, at(2), [note(ONE, 'b', { v: 2 })]);
        expect(await generation.load([keyOf('a')])).toEqual([{ v: 1 }]);
        expect(await settling).toBe(true);
        expect((await other.control()).n).toBe(2);
        await generation.commit(2, at(3), [], true);
        expect((await generation.control()).n).toBe(3);
        expect((await other.control()).n).toBe(3);
        await generation.settle();
      });

      it('is never half of one: all of them or none, whatever fails', async () => {
        const generation = await filled(note(ONE, 'a', { v: 1 }));
        for (let k = 1; ; k += 1) {
          const { n } = await generation.control();
          const was = await stateOf(generation);
          store.failAt(k);
          const outcome = await (async () => {
            await generation.commit(n, at(n + 1), [note(TWO, `k${k}`, { v: n })], true);
            await generation.commit(n + 1, at(n + 2), [note(ONE, 'a', { v: n })]);
            return 'done';
          })().catch(() => 'failed');
          const reached = store.reached();
          store.failAt(0);
          if (outcome === 'done') {
            expect(reached).toBeLessThan(k);
            expect((await generation.control()).n).toBe(n + 2);
            return;
          }
          expect(await stateOf(generation)).toEqual(was);
        }
      });

      it('is lost when settling it fails, and gives no tenant the documents of another then', async () => {
        const generation = await fresh();
        const [three, four] = [
          '33333333-3333-4333-8333-333333333333',
          '44444444-4444-4444-8444-444444444444',
        ];
        await generation.commit(0, at(1), [note(three, 'a', { of: 'three' })], true);
        store.failAt(1);
        await expect(generation.settle()).rejects.toThrow();
        store.failAt(0);
        expect((await generation.control()).n).toBe(0);
        expect(await generation.commit(0, at(1), [note(four, 'a', { of: 'four' })])).toBe(true);
        expect(await generation.commit(1, at(2), [note(three, 'b', { of: 'three' })])).toBe(true);
        expect(await generation.get(four, 'notes', 'b')).toBeUndefined();
        expect(await generation.get(three, 'notes', 'b')).toEqual({ of: 'three' });
        expect((await generation.scan('notes', 9)).map(({ tenantId }) => tenantId)).toEqual([three, four]);
      });

      it('does not give a tenant the documents of another when it is undone', async () => {
        const generation = await fresh();
        const [three, four] = [
          '33333333-3333-4333-8333-333333333333',
          '44444444-4444-4444-8444-444444444444',
        ];
        await generation.commit(0, at(1), [note(three, 'a', { of: 'three' })], true);
        expect(await generation.load([{ ...keyOf('a'), tenantId: three }])).toEqual([{ of: 'three' }]);
        store.failAt(1);
        await expect(generation.commit(1, at(2), [note(ONE, 'a', {})], true)).rejects.toThrow();
        store.failAt(0);
        await generation.commit(0, at(1), [note(four, 'a', { of: 'four' })], true);
        expect(await generation.load([three, four].map((tenantId) => ({ ...keyOf('a'), tenantId })))).toEqual(
          [undefined, { of: 'four' }],
        );
      });
    });

    describe('stretches', () => {
      const keys = ['b', 'a', 'ä', '', 'a\u0000b', 'a"', '😀', 'a b'];
      const writes = [TWO, ONE].flatMap((tenant) =>
        keys.flatMap((key) => [
          note(tenant, key, { of: tenant, key, shelf: 1 }),
          put(tenant, 'counts', key, { of: tenant, key }),
        ]),
      );
      const nameOf = ({ tenantId, key }: { tenantId: string; key: string }): string => `${tenantId} ${key}`;

      /** The stretches of a collection, one after the other. */
      const walked = async (generation: Generation, collection: string, stretch: Stretch) => {
        const stretches: Lying[] = [];
        let { after } = stretch;
        do {
          const lying = await generation.lying(collection, { ...stretch, after });
          stretches.push(lying);
          after = lying.cutAt;
        } while (after !== undefined);
        return stretches;
      };
      const rowsOf = (stretches: readonly Lying[]) => stretches.flatMap(({ documents }) => documents);

      it.each(['notes', 'counts'])(
        'of %s hold every document once, and are cut in time',
        async (collection) => {
          const generation = await filled(...writes);
          const expected = (await generation.scan(collection, 99)).map(nameOf).toSorted();
          for (const limit of [1, 3, 8, 16, 99]) {
            const stretches = await walked(generation, collection, { limit });
            expect(rowsOf(stretches).map(nameOf).toSorted()).toEqual(expected);
            for (const { documents } of stretches) expect(documents.length).toBeLessThanOrEqual(limit);
          }
          for (const row of rowsOf(await walked(generation, collection, { limit: 5 })))
            expect(row.document).toMatchObject({ of: row.tenantId, key: row.key });
        },
      );

      it.each(['notes', 'counts'])('of %s may be those of one tenant only', async (collection) => {
        const generation = await filled(...writes);
        for (const limit of [1, 3, 99]) {
          const rows = rowsOf(await walked(generation, collection, { limit, tenantId: ONE }));
          expect(rows.map(({ key }) => key).toSorted()).toEqual(keys.toSorted());
          expect(new Set(rows.map(({ tenantId }) => tenantId))).toEqual(new Set([ONE]));
        }
        const nobody = { limit: 9, tenantId: '0198c0de-0000-7000-8000-00000000000e' };
        expect(rowsOf(await walked(generation, collection, nobody))).toEqual([]);
      });

      it.each(['notes', 'counts'])('of %s are the same however the batches were cut', async (collection) => {
        const generation = await filled(...writes);
        const other = await store.readModels.open({ ...generation.id, generation: 2 }, collections, LOG);
        let n = 0;
        for (const write of writes) expect(await other.commit(n++, at(n), [write])).toBe(true);
        for (const limit of [1, 5, 99])
          expect(await walked(other, collection, { limit })).toEqual(
            await walked(generation, collection, { limit }),
          );
      });

      it.each(['notes', 'counts'])('of %s end at a place, whatever lies behind it', async (collection) => {
        const generation = await filled(...writes);
        const [first] = await walked(generation, collection, { limit: 4 });
        const upTo = first?.cutAt;
        expect(rowsOf(await walked(generation, collection, { limit: 99, upTo }))).toHaveLength(4);
        expect(rowsOf(await walked(generation, collection, { limit: 3, upTo }))).toHaveLength(4);
        expect(rowsOf(await walked(generation, collection, { limit: 3, after: upTo }))).toHaveLength(12);
      });

      it.each(['notes', 'counts'])(
        'of %s stay where they are when others come and go',
        async (collection) => {
          const generation = await filled(...writes);
          const [first] = await walked(generation, collection, { limit: 4 });
          const [leaving, ...staying] = first?.documents ?? [];
          await generation.commit(1, at(2), [
            gone(leaving?.tenantId ?? '', collection, leaving?.key ?? ''),
            put(TWO, collection, 'zz new', { of: TWO, key: 'zz new', shelf: 1 }),
          ]);
          const stretch = { limit: 99, upTo: first?.cutAt };
          const rows = rowsOf(await walked(generation, collection, stretch)).filter(
            ({ key }) => key !== 'zz new',
          );
          expect(rows).toEqual(staying);
        },
      );

      /** Another generation with these documents. */
      const another = async (...documents: readonly Write[]): Promise<Generation> => {
        const other = await store.readModels.open({ ...id('notes'), generation: 2 }, collections, LOG);
        expect(await other.commit(0, at(1), documents)).toBe(true);
        return other;
      };
      /** The same in a collection that has no indexes. */
      const twins = (some: readonly Write[]): readonly Write[] =>
        some.map((write) => ({ ...write, collection: 'counts' }));

      it.each(['notes', 'counts'])(
        'of %s match those of an equal generation, cut by cut',
        async (collection) => {
          const generation = await filled(...writes);
          const other = await another(...writes);
          for (const limit of [1, 5, 99]) {
            let [after, documents]: [string | undefined, number] = [undefined, 0];
            do {
              const found = await generation.matches(other, collection, { limit, after });
              const { cutAt } = await generation.lying(collection, { limit, after });
              expect(found).toMatchObject({ isSame: true, ...(cutAt === undefined ? {} : { cutAt }) });
              documents += found.documents;
              after = found.cutAt;
            } while (after !== undefined);
            expect(documents).toBe(16);
          }
          const [first] = await walked(generation, collection, { limit: 4 });
          const stretch = { limit: 99, upTo: first?.cutAt };
          expect(await generation.matches(other, collection, stretch)).toEqual({
            documents: 4,
            isSame: true,
          });
        },
      );

      it.each<[string, Partial<Write>]>([
        ['key', { key: 'another' }],
        ['tenant', { tenantId: '0198c0de-0000-7000-8000-00000000000f' }],
        ['document', { document: { of: TWO, key: 'b', shelf: 2 } }],
      ])('do not match those that have another %s at the same place', async (_, difference) => {
        const [first, ...rest] = writes as [Write, ...Write[]];
        const all = [first, ...rest, ...twins([first])];
        const changed = [{ ...first, ...difference }, ...rest, ...twins([{ ...first, ...difference }])];
        const [generation, other] = [await filled(...all), await another(...changed)];
        for (const collection of ['notes', 'counts'])
          expect(await generation.matches(other, collection, { limit: 99 })).toMatchObject({ isSame: false });
      });

      it('do not match when nothing is on one side', async () => {
        const [generation, other] = [await filled(), await another(...writes)];
        expect(await generation.matches(other, 'notes', { limit: 9 })).toEqual({
          documents: 0,
          isSame: false,
        });
        expect(await other.matches(generation, 'counts', { limit: 99 })).toEqual({
          documents: 16,
          isSame: false,
        });
        expect(await generation.matches(other, PARKED, { limit: 9 })).toEqual({ documents: 0, isSame: true });
      });

      it.each<[string, Write[]]>([
        ['a changed document', [note(TWO, '😀', { of: TWO, key: 'x' })]],
        ['one more', [note(TWO, '😀😀', {})]],
        ['one less', [gone(ONE, 'notes', '')]],
        ['another key', [gone(ONE, 'notes', 'b'), note(ONE, 'c', { of: ONE, key: 'b' })]],
        [
          'another key behind a NUL',
          [gone(ONE, 'notes', 'a\u0000b'), note(ONE, 'a\u0000c', { of: ONE, key: 'a\u0000b' })],
        ],
        [
          'another tenant',
          [gone(TWO, 'notes', 'b'), note('0198c0de-0000-7000-8000-00000000000f', 'b', { of: TWO, key: 'b' })],
        ],
      ])('do not match those with %s', async (_, changes) => {
        const generation = await filled(...writes, ...twins(writes));
        const other = await another(...writes, ...twins(writes));
        for (const collection of ['notes', 'counts'])
          expect(await generation.matches(other, collection, { limit: 99 })).toMatchObject({ isSame: true });
        await other.commit(1, at(2), [...changes, ...twins(changes)]);
        for (const collection of ['notes', 'counts']) {
          expect(await generation.matches(other, collection, { limit: 99 })).toMatchObject({ isSame: false });
          expect(await other.matches(generation, collection, { limit: 99 })).toMatchObject({ isSame: false });
        }
      });

      it('refuse a collection that is not declared', async () => {
        const generation = await fresh();
        await expect(generation.matches(generation, 'nowhere', { limit: 1 })).rejects.toThrow(/nowhere/);
        await expect(generation.lying('nowhere', { limit: 1 })).rejects.toThrow(/nowhere/);
      });
    });

    describe('documents', () => {
      it.each<[string, Document]>([
        ['nothing', {}],
        ['unicode', { text: 'Zoë 漢字 😀 e\u0301 \u202e', 'schlüssel 漢': 'ß', shelf: '漢字😀' }],
        ['odd characters', { text: 'quote \' " \\ \n \t \u0000 %_', shelf: "'; --" }],
        ['nested objects', { a: { b: { c: [{ d: [] }, {}] } }, list: [1, 'two', null, true] }],
        [
          'numbers',
          { zero: 0, less: -1, part: 0.1, most: Number.MAX_SAFE_INTEGER, huge: 1e300, tiny: 5e-324 },
        ],
        ['numbers in an index', { shelf: Number.MAX_SAFE_INTEGER, place: -0.5 }],
        ['empty values', { text: '', list: [], object: {}, nothing: null, no: false, shelf: '' }],
        ['a long text', { text: 'long '.repeat(20_000) }],
      ])('come back as they were: %s', async (_, document) => {
        const generation = await filled(note(ONE, 'a', document));
        expect(await generation.get(ONE, 'notes', 'a')).toEqual(document);
        expect(await generation.find(ONE, 'notes', { limit: 1 })).toEqual([document]);
        const { shelf } = document as { shelf?: string | number };
        if (shelf === undefined) return;
        const query = { index: 'by_shelf', equal: [shelf], limit: 9 };
        expect(await generation.find(ONE, 'notes', query)).toEqual([document]);
      });

      it.each(['漢字 😀', 'a/b', "it's", '%', 'A', ''])('are kept under the key "%s"', async (key) => {
        const generation = await filled(note(ONE, key, { key }), note(ONE, 'a', { key: 'a' }));
        expect(await generation.get(ONE, 'notes', key)).toEqual({ key });
        expect(await generation.find(ONE, 'notes', { limit: 9 })).toHaveLength(2);
      });
    });

    describe('opened in bulk', () => {
      const inBulk = (readModels = store.readModels) => readModels.open(id('notes'), collections, LOG, true);
      const onShelf = async (generation: Generation, shelf: string) =>
        (await generation.find(ONE, 'notes', { index: 'by_shelf', equal: [shelf], limit: 99 })).map(
          (document) => document['place'],
        );
      const many = Array.from({ length: 200 }, (_, i) =>
        note(ONE, `n${i}`, { shelf: `${i % 10}`, place: 200 - i }),
      );
      const onThree = [7, 17, 27, 37, 47, 57, 67, 77, 87, 97].flatMap((place) => [place, place + 100]);

      it('a generation is found in by its indexes once it is finished', async () => {
        const generation = await inBulk();
        expect(await generation.commit(0, at(1), many)).toBe(true);
        await generation.finish();
        expect(await onShelf(generation, '3')).toEqual(onThree.toSorted((a, b) => a - b));
        await generation.finish();
        expect(await generation.commit(1, at(2), [note(ONE, 'late', { shelf: '3', place: 1 })])).toBe(true);
        expect((await onShelf(generation, '3'))[0]).toBe(1);
        expect(await stateOf(await openIn(await again()))).toEqual(await stateOf(generation));
      });

      it.each(['here', 'elsewhere'])('it is made good by the next normal opening %s', async (where) => {
        const generation = await inBulk();
        await generation.commit(0, at(1), many);
        const normal = await openIn(where === 'here' ? store.readModels : await again());
        expect(await onShelf(normal, '3')).toEqual(onThree.toSorted((a, b) => a - b));
        expect(await store.isIndexed(generation.id)).toBe(true);
      });

      it('it puts the indexes off', async () => {
        const generation = await inBulk();
        await generation.commit(0, at(1), many);
        expect(await store.isIndexed(generation.id)).toBe(false);
        await generation.finish();
        expect(await store.isIndexed(generation.id)).toBe(true);
      });

      const asNew = (writes: readonly Write[]): readonly Write[] =>
        writes.map((write) => ({ ...write, isNew: true }));
      const later = [note(ONE, 'later', { shelf: 'b', place: 9 }), put(TWO, 'counts', 'later', { count: 9 })];
      const isParked = async (generation: Generation) =>
        (await generation.scan(PARKED, 9)).map(({ tenantId }) => tenantId);

      /** The state after all commits, as a generation that was never in bulk has it. */
      const wholeState = async () => {
        const generation = await store.readModels.open(id('whole'), collections, LOG);
        for (const [n, writes] of [before, change, later].entries())
          expect(await generation.commit(n, at(n + 1), writes)).toBe(true);
        return stateOf(generation);
      };

      it.each(['at once', 'put off'])('it takes what is new without looking, %s', async (when) => {
        const generation = await inBulk();
        const isPutOff = when === 'put off';
        expect(await generation.commit(0, at(1), asNew(before), isPutOff)).toBe(true);
        expect(await generation.load([...before, ...later])).toEqual([
          ...before.map(({ document }) => document),
          ...later.map(() => undefined),
        ]);
        expect(await generation.commit(1, at(2), change, isPutOff)).toBe(true);
        expect(await generation.commit(2, at(3), asNew(later), isPutOff)).toBe(true);
        expect(await generation.load([...change, ...later])).toEqual(
          [...change, ...later].map(({ document }) => document),
        );
        expect(await generation.control()).toMatchObject({ n: 3 });
        expect(await isParked(generation)).toEqual([ONE]);
        await generation.finish();
        expect(await stateOf(generation)).toEqual(await wholeState());
      });

      it.each(['looked for something', 'finished it'])(
        'it goes on although another one has %s',
        async (what) => {
          const generation = await inBulk();
          expect(await generation.commit(0, at(1), asNew(before))).toBe(true);
          const other = await inBulk(await again());
          await (what === 'finished it' ? other.finish() : other.load(before));
          expect(await generation.commit(1, at(2), asNew(later))).toBe(true);
          await generation.finish();
          expect(await generation.load(later)).toEqual(later.map(({ document }) => document));
          expect(await stateOf(await openIn(await again()))).toEqual(await stateOf(generation));
        },
      );

      it('it goes on from where another process has left it', async () => {
        expect(await (await inBulk()).commit(0, at(1), asNew(before))).toBe(true);
        const generation = await inBulk(await again());
        expect(await isParked(generation)).toEqual([TWO]);
        expect(await generation.commit(1, at(2), change)).toBe(true);
        expect(await generation.commit(2, at(3), later)).toBe(true);
        await generation.finish();
        expect(await stateOf(generation)).toEqual(await wholeState());
      });

      it('it loses nothing that was settled, wherever it fails', async () => {
        const expected = await wholeState();
        const fillFrom = async (generation: Generation, n: number): Promise<void> => {
          const steps = [asNew(before), change, asNew(later)];
          for (const [i, writes] of steps.entries())
            if (i >= n) expect(await generation.commit(i, at(i + 1), writes, i === 1)).toBe(true);
          await generation.finish();
        };
        store.failAt(0);
        await fillFrom(await store.readModels.open(id('counted'), collections, LOG, true), 0);
        const points = store.reached();
        for (let k = 1; k <= points; k += 1) {
          const generation = await store.readModels.open(id('notes', 1, k), collections, LOG, true);
          store.failAt(k);
          await expect(fillFrom(generation, 0)).rejects.toThrow();
          await fillFrom(generation, (await generation.control()).n);
          expect(await stateOf(generation)).toEqual(expected);
        }
      });
    });

    describe('a snapshot', () => {
      const keys = [ONE, TWO].map((tenantId) => ({ tenantId, collection: 'counts', key: 'n' }));

      it('gives the control state and the documents in the order asked for', async () => {
        const generation = await filled(put(TWO, 'counts', 'n', { count: 2 }));
        expect(
          await generation.snapshot([...keys, { tenantId: TWO, collection: 'notes', key: 'x' }]),
        ).toEqual({
          control: await generation.control(),
          documents: [undefined, { count: 2 }, undefined],
        });
        expect((await generation.snapshot([])).documents).toEqual([]);
        await expect(
          generation.snapshot([{ tenantId: ONE, collection: 'nowhere', key: 'a' }]),
        ).rejects.toThrow(/nowhere/);
        expect((await generation.snapshot(keys)).documents).toHaveLength(2);
      });

      it('is of one moment while another one commits', async () => {
        const generation = await fresh();
        const writing = await openIn(await again());
        let done = false;
        const commits = (async () => {
          for (let n = 0; n < 60; n++)
            expect(
              await writing.commit(n, at(n + 1), [
                put(ONE, 'counts', 'n', { count: n + 1 }),
                put(TWO, 'counts', 'n', { count: n + 1 }),
              ]),
            ).toBe(true);
          done = true;
        })();
        for (; !done; await new Promise((resolve) => setImmediate(resolve))) {
          const { control, documents } = await generation.snapshot(keys);
          const expected = control.n === 0 ? undefined : { count: control.n };
          expect(documents).toEqual([expected, expected]);
        }
        await commits;
        expect((await generation.snapshot(keys)).control.n).toBe(60);
      });
    });

    describe('a generation that is not used any more', () => {
      it('is shut here, and usable elsewhere and when it is opened again', async () => {
        const generation = await filled(note(ONE, 'a', { text: 'kept' }));
        const elsewhere = await openIn(await again());
        await store.readModels.shut(generation.id);
        expect(await elsewhere.get(ONE, 'notes', 'a')).toEqual({ text: 'kept' });
        const reopened = await fresh();
        expect(await reopened.get(ONE, 'notes', 'a')).toEqual({ text: 'kept' });
        expect(await reopened.commit(1, at(2), [])).toBe(true);
        await store.readModels.shut(id('never', 1, 9));
      });

      it('is dropped for good, and begins empty when it is opened again', async () => {
        const generation = await filled(note(ONE, 'a', { text: 'old' }));
        await openIn(store.readModels, id('notes', 1, 2));
        await store.readModels.drop(generation.id);
        expect(await store.readModels.generations()).toEqual([id('notes', 1, 2)]);
        const fromNew = await fresh();
        expect(await stateOf(fromNew)).toMatchObject({ control: { n: 0, log: LOG }, documents: [] });
        expect(await fromNew.commit(0, at(1), [note(ONE, 'a', { text: 'new' })])).toBe(true);
        expect(await (await openIn(await again())).get(ONE, 'notes', 'a')).toEqual({ text: 'new' });
        await store.readModels.drop(id('never', 1, 9));
      });

      it('may be dropped by another one than who uses it', async () => {
        const generation = await filled(note(ONE, 'a', { text: 'old' }));
        const other = await again();
        await other.drop(generation.id);
        expect(await store.readModels.generations()).toEqual([]);
        await store.readModels.shut(generation.id);
        expect((await (await fresh()).control()).n).toBe(0);
      });
    });

    describe('asking', () => {
      it('is counted for each thing, and seen by others', async () => {
        const other = await again();
        expect(await store.readModels.asked('retry')).toEqual({ times: 0, note: '' });
        await store.readModels.ask('retry');
        await Promise.all([store.readModels.ask('retry'), other.ask('retry'), other.ask('more')]);
        for (const one of [store.readModels, other, await again()]) {
          expect(await one.asked('retry')).toEqual({ times: 3, note: '' });
          expect(await one.asked('more')).toEqual({ times: 1, note: '' });
        }
      });

      it('keeps the note of the last one', async () => {
        const other = await again();
        await store.readModels.ask('retry', 'first');
        await other.ask('retry', 'second');
        expect(await store.readModels.asked('retry')).toEqual({ times: 2, note: 'second' });
        await store.readModels.ask('retry');
        expect(await other.asked('retry')).toEqual({ times: 3, note: '' });
      });
    });

    describe('a pointer', () => {
      it('is missing at first', async () => {
        expect(await store.readModels.pointer('notes', 1)).toBeUndefined();
      });

      it('is set once, moved, and seen by others', async () => {
        const { readModels } = store;
        expect(await readModels.point('notes', 1, { live: 1 }, undefined)).toBe(true);
        expect(await readModels.pointer('notes', 1)).toEqual({ live: 1 });
        expect(await readModels.point('notes', 1, { live: 2, previous: 1 }, { live: 1 })).toBe(true);
        expect(await (await again()).pointer('notes', 1)).toEqual({ live: 2, previous: 1 });
      });

      it.each([
        ['there is one already', { live: 2, previous: 1 }, undefined],
        ['another one is live', { live: 2, previous: 1 }, { live: 1 }],
        ['another one was live before', { live: 2, previous: 1 }, { live: 2 }],
        ['none was live before', { live: 2 }, { live: 2, previous: 1 }],
      ])('is not moved when %s', async (_, now, believed) => {
        const { readModels } = store;
        await readModels.point('notes', 1, now, undefined);
        expect(await readModels.point('notes', 1, { live: 3 }, believed)).toBe(false);
        expect(await readModels.pointer('notes', 1)).toEqual(now);
      });

      it('is not moved when there is none', async () => {
        expect(await store.readModels.point('notes', 1, { live: 2 }, { live: 1 })).toBe(false);
        expect(await store.readModels.pointer('notes', 1)).toBeUndefined();
      });

      it('is one for each name and version', async () => {
        const { readModels } = store;
        await readModels.point('notes', 1, { live: 1 }, undefined);
        await readModels.point('notes', 2, { live: 5 }, undefined);
        await readModels.point('tags', 1, { live: 7 }, undefined);
        expect(await readModels.pointer('notes', 1)).toEqual({ live: 1 });
        expect(await readModels.pointer('notes', 2)).toEqual({ live: 5 });
        expect(await readModels.pointer('tags', 1)).toEqual({ live: 7 });
      });

      it('is moved by one of many at once', async () => {
        const stores = [store.readModels, await again()];
        const outcomes = await Promise.all(
          [1, 2, 3, 4].map((live) => stores[live % 2]!.point('notes', 1, { live }, undefined)),
        );
        expect(outcomes.filter(Boolean)).toHaveLength(1);
        expect(await stores[0]!.pointer('notes', 1)).toEqual({ live: outcomes.indexOf(true) + 1 });
      });
    });

    describe('a generation that was live', () => {
      const LONG = 600_000;

      it('was live lately, for everybody, for as long as is asked for', async () => {
        const { readModels } = store;
        const other = await again();
        expect(await readModels.liveLately('notes', 1, LONG)).toEqual([]);
        await readModels.point('notes', 1, { live: 1 }, undefined);
        expect(await readModels.liveLately('notes', 1, LONG)).toEqual([]);
        await readModels.point('notes', 1, { live: 2, previous: 1 }, { live: 1 });
        await readModels.point('notes', 1, { live: 3, previous: 2 }, { live: 2, previous: 1 });
        for (const one of [readModels, other, await again()])
          expect(new Set(await one.liveLately('notes', 1, LONG))).toEqual(new Set([1, 2]));
        expect(await other.liveLately('notes', 1, 0)).toEqual([]);
        expect(await other.liveLately('notes', 2, LONG)).toEqual([]);
        expect(await other.liveLately('tags', 1, LONG)).toEqual([]);
        while ((await other.liveLately('notes', 1, 50)).length > 0) await turn();
        expect(await other.liveLately('notes', 1, LONG)).toHaveLength(2);
      });

      it('is not among them while it is live again', async () => {
        const { readModels } = store;
        await readModels.point('notes', 1, { live: 1 }, undefined);
        await readModels.point('notes', 1, { live: 2, previous: 1 }, { live: 1 });
        await readModels.point('notes', 1, { live: 1, previous: 2 }, { live: 2, previous: 1 });
        expect(await readModels.liveLately('notes', 1, LONG)).toEqual([2]);
        await readModels.point('notes', 1, { live: 1 }, { live: 1, previous: 2 });
        expect(await readModels.liveLately('notes', 1, LONG)).toEqual([2]);
      });
    });

    describe('removing a generation', () => {
      const LONG = 600_000;
      const unless = { held: 'work', live: true };
      const two = id('notes', 1, 2);
      const pointed = (live: number, previous?: number) =>
        previous === undefined ? { live } : { live, previous };

      it('takes it from the pointer, and nothing points at it again', async () => {
        const { readModels } = store;
        const other = await again();
        await readModels.point('notes', 1, { live: 1, previous: 2 }, undefined);
        expect(await other.isRemoved(two)).toBe(false);
        expect(await readModels.markRemoved(two, unless)).toBe(true);
        for (const one of [readModels, other, await again()]) {
          expect(await one.isRemoved(two)).toBe(true);
          expect(await one.pointer('notes', 1)).toEqual({ live: 1 });
          expect(await one.point('notes', 1, { live: 2, previous: 1 }, { live: 1 })).toBe(false);
          expect(await one.point('notes', 1, { live: 3, previous: 2 }, { live: 1 })).toBe(false);
        }
        expect(await readModels.point('notes', 1, { live: 3, previous: 1 }, { live: 1 })).toBe(true);
        expect(await readModels.markRemoved(two, unless)).toBe(true);
        expect(await other.isRemoved(id('notes', 2, 2))).toBe(false);
        expect(await other.isRemoved(id('notes', 1, 22))).toBe(false);
      });

      it('is refused while it is live, and changes nothing', async () => {
        const { readModels } = store;
        await readModels.point('notes', 1, { live: 2, previous: 1 }, undefined);
        expect(await readModels.markRemoved(two, unless)).toBe(false);
        expect(await readModels.isRemoved(two)).toBe(false);
        expect(await readModels.pointer('notes', 1)).toEqual({ live: 2, previous: 1 });
        const back = { live: 1, previous: 2 };
        expect(await readModels.point('notes', 1, back, { live: 2, previous: 1 })).toBe(true);
        expect(await readModels.point('notes', 1, { live: 2, previous: 1 }, back)).toBe(true);
      });

      it('is refused while somebody holds the lease, and changes nothing', async () => {
        const { readModels } = store;
        const other = await again();
        await readModels.point('notes', 1, { live: 1, previous: 2 }, undefined);
        await other.lease('work', 'holder one', LONG);
        expect(await readModels.markRemoved(two, unless)).toBe(false);
        expect(await other.markRemoved(two, { ...unless, live: false })).toBe(false);
        expect(await readModels.isRemoved(two)).toBe(false);
        expect(await readModels.pointer('notes', 1)).toEqual({ live: 1, previous: 2 });
        await other.release('work', 'holder one');
        await other.lease('play', 'holder one', LONG);
        expect(await readModels.markRemoved(two, unless)).toBe(true);
      });

      it('goes with its pointer where being live does not matter', async () => {
        const { readModels } = store;
        await readModels.point('notes', 1, { live: 2, previous: 1 }, undefined);
        expect(await readModels.markRemoved(two, { held: 'work', live: false })).toBe(true);
        expect(await readModels.pointer('notes', 1)).toBeUndefined();
        expect(await readModels.isRemoved(two)).toBe(true);
        expect(await readModels.point('notes', 1, { live: 2 }, undefined)).toBe(false);
        expect(await readModels.point('notes', 1, { live: 1 }, undefined)).toBe(true);
      });

      it('and a switch to it exclude each other, whoever comes first', async () => {
        const stores = [store.readModels, await again()] as const;
        for (let round = 0; round < 20; round += 1) {
          const raced = id('notes', round + 1, 2);
          await stores[0].point('notes', round + 1, pointed(1, 2), undefined);
          const [switched, removed] = await Promise.all([
            stores[round % 2 === 0 ? 0 : 1].point('notes', round + 1, pointed(2, 1), pointed(1, 2)),
            stores[round % 3 === 0 ? 0 : 1].markRemoved(raced, unless),
          ]);
          expect(switched).toBe(!removed);
          expect(await stores[1].isRemoved(raced)).toBe(removed);
          expect(await stores[1].pointer('notes', round + 1)).toEqual(removed ? pointed(1) : pointed(2, 1));
        }
      });

      it('keeps it usable until it is dropped, and from being made again then', async () => {
        const { readModels } = store;
        const generation = await openIn(readModels, two);
        await generation.commit(0, at(1), [note(ONE, 'a', { text: 'kept' })]);
        await readModels.markRemoved(two, unless);
        const other = await again();
        expect(await (await openIn(other, two)).get(ONE, 'notes', 'a')).toEqual({ text: 'kept' });
        await other.drop(two);
        expect(await generation.get(ONE, 'notes', 'a')).toEqual({ text: 'kept' });
        for (const one of [other, await again()])
          await expect(openIn(one, two)).rejects.toMatchObject({ code: 'generation_removed' });
        expect(await readModels.generations()).toEqual([]);
        await openIn(other, id('notes', 1, 3));
      });
    });

    describe('numbers of generations', () => {
      it('are given once each, to whoever asks', async () => {
        const stores = [store.readModels, await again()];
        const numbers = await Promise.all(
          Array.from({ length: 12 }, (_, i) => stores[i % 2]!.nextNumber('notes', 1)),
        );
        expect(new Set(numbers).size).toBe(12);
        expect(Math.min(...numbers)).toBeGreaterThan(1);
      });

      it('are not those of generations that are there, were dropped or are removed', async () => {
        const { readModels } = store;
        await openIn(readModels, id('notes', 1, 5));
        const first = await readModels.nextNumber('notes', 1);
        expect(first).toBe(6);
        await openIn(readModels, id('notes', 1, first));
        await readModels.drop(id('notes', 1, first));
        expect(await readModels.nextNumber('notes', 1)).toBe(7);
        await readModels.markRemoved(id('notes', 1, 9), { held: 'work', live: true });
        expect(await (await again()).nextNumber('notes', 1)).toBe(10);
        expect(await readModels.nextNumber('notes', 2)).toBe(2);
      });
    });

    describe('a lease', () => {
      const LONG = 600_000;

      it('is taken, renewed, and refused to others', async () => {
        const other = await again();
        expect(await store.readModels.lease('work', 'holder one', LONG)).toBe(true);
        expect(await other.lease('work', 'holder two', LONG)).toBe(false);
        expect(await store.readModels.lease('work', 'holder one', LONG)).toBe(true);
        expect(await other.leaseHolder('work')).toBe('holder one');
      });

      it('is nobody’s before it is taken', async () => {
        expect(await store.readModels.leaseHolder('work')).toBeUndefined();
      });

      it('is taken by one of many at once', async () => {
        const stores = [store.readModels, await again()];
        const outcomes = await Promise.all(
          [0, 1, 2, 3].map((i) => stores[i % 2]!.lease('work', `holder h${i}`, LONG)),
        );
        expect(outcomes.filter(Boolean)).toHaveLength(1);
        expect(await stores[1]!.leaseHolder('work')).toBe(`holder h${outcomes.indexOf(true)}`);
      });

      it('ends by itself', async () => {
        await store.readModels.lease('work', 'holder one', 40);
        const began = performance.now();
        while (!(await store.readModels.lease('work', 'holder two', LONG)));
        expect(performance.now() - began).toBeGreaterThan(10);
        expect(await store.readModels.leaseHolder('work')).toBe('holder two');
        expect(await store.readModels.lease('work', 'holder one', LONG)).toBe(false);
      });

      it('has no holder once it has ended', async () => {
        await store.readModels.lease('work', 'holder one', 40);
        while ((await store.readModels.leaseHolder('work')) !== undefined)
          await new Promise((resolve) => setImmediate(resolve));
      });

      it('lives longer by being renewed', async () => {
        await store.readModels.lease('work', 'holder one', 1);
        await store.readModels.lease('work', 'holder one', LONG);
        const began = performance.now();
        while (performance.now() - began < 20)
          expect(await store.readModels.lease('work', 'holder two', LONG)).toBe(false);
      });

      it('is free when its holder releases it', async () => {
        await store.readModels.lease('work', 'holder one', LONG);
        await store.readModels.release('work', 'holder one');
        expect(await store.readModels.leaseHolder('work')).toBeUndefined();
        expect(await (await again()).lease('work', 'holder two', LONG)).toBe(true);
      });

      it('is not released by anybody else', async () => {
        await store.readModels.lease('work', 'holder one', LONG);
        await store.readModels.release('work', 'holder two');
        expect(await store.readModels.leaseHolder('work')).toBe('holder one');
      });

      it('carries a note of its holder, seen while it is held', async () => {
        const other = await again();
        expect(await other.leaseNote('work')).toBeUndefined();
        await store.readModels.lease('work', 'holder one', LONG, 'begun');
        expect(await other.leaseNote('work')).toBe('begun');
        await store.readModels.lease('work', 'holder one', LONG, 'half done');
        await other.lease('work', 'holder two', LONG, 'mine');
        expect(await other.leaseNote('work')).toBe('half done');
        expect(await other.leaseNote('play')).toBeUndefined();
        await store.readModels.release('work', 'holder one');
        expect(await other.leaseNote('work')).toBeUndefined();
      });

      it('is one for each thing', async () => {
        expect(await store.readModels.lease('work', 'holder one', LONG)).toBe(true);
        expect(await store.readModels.lease('play', 'holder two', LONG)).toBe(true);
        await store.readModels.release('work', 'holder two');
        await store.readModels.release('play', 'holder two');
        expect(await store.readModels.leaseHolder('work')).toBe('holder one');
        expect(await store.readModels.leaseHolder('play')).toBeUndefined();
      });
    });
  });
};
