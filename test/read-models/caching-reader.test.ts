import type { Collection, Document, Query } from '../../projections/projector';
import { yieldToEventLoop } from '../../src/async/clock';
import { fault } from '../../src/fault';
import type { Checkpoint, Generation, Reader, Write } from '../../src/read-models/read-models';
import { cachingReader } from '../../src/read-models/caching-reader';
import { closeAfterwards } from '../support/closing';
import { freshFolder } from '../support/folders';
import { storeUnderTest } from '../support/store-under-test';
import { createAndOpen } from '../support/generations';

const LOG = '7d0d0c0e-7f0b-4f4e-8c59-6a2f3f1e9a01';
const TENANT = '11111111-1111-4111-8111-111111111111';
const OTHER_TENANT = '22222222-2222-4222-8222-222222222222';
const ID = { projection: 'notes', version: 1, generation: 'one' };
const collections: readonly Collection[] = [
  {
    name: 'notes',
    indexes: { by_shelf: ['shelf'], on_shelf: ['shelf', 'place'] },
    numbered: { on_shelf: 'moment' },
  },
];
const FIRST = { index: 'by_shelf', equal: ['a'], limit: 1 };

/** Counts the reads that reach the store. */
const counted = (reader: Reader) => {
  const reads = { count: 0 };
  const counting =
    <A extends readonly unknown[], R>(read: (...asked: A) => R) =>
    (...asked: A): R => {
      reads.count += 1;
      return read(...asked);
    };
  const { get, find, countsBefore } = reader;
  const asked = { get: counting(get), find: counting(find), countsBefore: counting(countsBefore) };
  return { reads, reader: { ...reader, ...asked } };
};

describe('readers with a cache', () => {
  let here: ReturnType<typeof counted>;
  let there: Generation;
  let n: number;
  const open = async (folder: string): Promise<Generation> => {
    const readModels = await storeUnderTest(folder);
    closeAfterwards(readModels.close);
    return createAndOpen(readModels, ID, collections, LOG);
  };
  /** By another process, as far as the reader can tell. */
  const commit = async (...writes: readonly Write[]): Promise<void> => {
    const to: Checkpoint = { position: String(n + 1).padStart(16, '0'), eventId: LOG };
    expect(await there.commit(n, to, writes)).toBe(true);
    n += 1;
  };
  const write = (text: string): Promise<void> =>
    commit({ tenantId: TENANT, collection: 'notes', key: 'one', document: { shelf: 'a', text } });
  beforeEach(async () => {
    const folder = freshFolder();
    here = counted((await open(folder)).reader);
    there = await open(folder);
    ({ n } = await there.control());
    await write('first');
  });

  const asking =
    (readers: ReturnType<typeof cachingReader>) => async (): Promise<readonly (Document | undefined)[]> => {
      await yieldToEventLoop();
      const reader = readers('notes');
      return [await reader.get(TENANT, 'notes', 'one'), ...(await reader.find(TENANT, 'notes', FIRST))];
    };
  const both = (text: string) => [
    { shelf: 'a', text },
    { shelf: 'a', text },
  ];

  it('read once while nothing changes, and again as soon as anything has', async () => {
    const ask = asking(cachingReader(() => here.reader));
    for (let i = 0; i < 5; i += 1) expect(await ask()).toEqual(both('first'));
    expect(here.reads.count).toBe(2);
    for (let i = 0; i < 50; i += 1) {
      await write(`text ${i}`);
      expect(await ask()).toEqual(both(`text ${i}`));
    }
    expect(here.reads.count).toBe(102);
  });

  const note = (tenantId: string, place: number, moment: string): Write => ({
    tenantId,
    collection: 'notes',
    key: `note ${place}`,
    document: { shelf: 'b', place, moment, of: tenantId },
  });
  const onShelf = { index: 'on_shelf', equal: ['b'] };

  it('count the documents before a value once while nothing changes, however many pages are requested', async () => {
    await commit(note(TENANT, 1, '1'), note(TENANT, 2, '3'));
    const reader = cachingReader(() => here.reader);
    const numbers = async (): Promise<readonly number[]> => {
      await yieldToEventLoop();
      return reader('notes').countsBefore(TENANT, 'notes', onShelf, ['2', '4']);
    };
    expect(await numbers()).toEqual([1, 2]);
    expect(await numbers()).toEqual([1, 2]);
    expect(here.reads.count).toBe(1);
    await write('another');
    expect(await numbers()).toEqual([1, 2]);
    expect(here.reads.count).toBe(2);
  });

  it('distinguish tenants with equally many documents, under the same keys, that make the same queries', async () => {
    const [one, two] = [TENANT, OTHER_TENANT];
    await commit(note(one, 1, '1'), note(one, 2, '3'), note(two, 1, '1'), note(two, 2, '1'));
    const reader = cachingReader(() => here.reader);
    const first = { index: 'by_shelf', equal: ['b'], limit: 1 };
    for (const round of [1, 2])
      for (const [tenantId, before] of [
        [one, 1],
        [two, 2],
      ] as const) {
        await yieldToEventLoop();
        const notes = reader('notes');
        expect(await notes.get(tenantId, 'notes', 'note 2')).toMatchObject({ of: tenantId });
        expect(await notes.find(tenantId, 'notes', first)).toMatchObject([{ of: tenantId }]);
        expect(await notes.find(tenantId, 'notes', { ...first, limit: 2 })).toHaveLength(2);
        expect([round, await notes.countsBefore(tenantId, 'notes', onShelf, ['2'])]).toEqual([
          round,
          [before],
        ]);
      }
  });

  it('distinguish queries by every part', async () => {
    await commit(...[1, 2, 3].map((place) => note(TENANT, place, `${place}`)));
    const query: Required<Query> = {
      index: 'by_shelf',
      equal: ['b'],
      from: 'note 1',
      upTo: 'note 2',
      descending: false,
      limit: 1,
      areAllThere: false,
    };
    const changed: { readonly [Part in keyof Query]-?: Query } = {
      index: { from: 'note 1', upTo: 'note 2', limit: 1 },
      equal: { ...query, equal: ['a'], from: 'one', upTo: 'one' },
      from: { ...query, from: 'note 2' },
      upTo: { ...query, upTo: 'note 3', descending: true },
      descending: { ...query, descending: true },
      limit: { ...query, limit: 0 },
      areAllThere: { ...query, areAllThere: true },
    };
    const notes = cachingReader(() => here.reader)('notes');
    for (const [part, asked] of Object.entries({ none: query, ...changed }))
      expect([part, await notes.find(TENANT, 'notes', asked)]).toEqual([
        part,
        await here.reader.find(TENANT, 'notes', asked),
      ]);
    for (const equal of ['a', 'b'])
      for (const value of ['0', '2', '4']) {
        const asked = [TENANT, 'notes', { ...onShelf, equal: [equal] }, [value]] as const;
        expect([asked, await notes.countsBefore(...asked)]).toEqual([
          asked,
          await here.reader.countsBefore(...asked),
        ]);
      }
  });

  it('read once for queries at the same time, and never answer with what a write has replaced', async () => {
    const ask = asking(cachingReader(() => here.reader));
    const all = await Promise.all(Array.from({ length: 20 }, ask));
    expect(all).toEqual(Array.from({ length: 20 }, () => both('first')));
    expect(here.reads.count).toBe(2);
    await write('second');
    expect(await ask()).toEqual(both('second'));
  });

  it('are replaced after a change and after a switch, so that nothing they cached outlives it', async () => {
    const all = [here.reader, there.reader];
    let live = 0;
    const readers = cachingReader(() => all[live]!);
    const now = async () => {
      await yieldToEventLoop();
      return readers('notes');
    };
    const first = await now();
    expect(await now()).toBe(first);
    await write('second');
    const second = await now();
    expect(second).not.toBe(first);
    live = 1;
    expect(await now()).not.toBe(second);
  });

  it('do not cache failures', async () => {
    let fails = true;
    const get: Reader['get'] = async (...asked) => {
      if (fails) throw fault('read_models_unavailable', 'Not now.');
      return here.reader.get(...asked);
    };
    const failing = { ...here.reader, get };
    const ask = asking(cachingReader(() => failing));
    await expect(ask()).rejects.toThrow('Not now.');
    fails = false;
    expect(await ask()).toEqual(both('first'));
  });

  it('cache nothing from a store that cannot tell whether it has changed', async () => {
    const { changeToken: _, ...plain } = here.reader;
    const readers = cachingReader(() => plain);
    const ask = asking(readers);
    await ask();
    const before = readers('notes');
    await ask();
    expect(here.reads.count).toBe(4);
    expect(readers('notes')).not.toBe(before);
  });

  it('do not cache pages, long queries, or more than their bound', async () => {
    const readers = cachingReader(() => here.reader);
    await yieldToEventLoop();
    const reader = readers('notes');
    for (let i = 0; i < 3; i += 1) await reader.find(TENANT, 'notes', { ...FIRST, limit: 20 });
    for (let i = 0; i < 3; i += 1) await reader.get(TENANT, 'notes', 'x'.repeat(1_000));
    expect(here.reads.count).toBe(6);
    for (let i = 0; i < 2_001; i += 1) await reader.get(TENANT, 'notes', `key ${i}`);
    await reader.get(TENANT, 'notes', 'key 0');
    expect(here.reads.count).toBe(6 + 2_002);
  });
});
