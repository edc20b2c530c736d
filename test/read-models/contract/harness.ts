import type { Collection, Document } from '../../../projections/projector';
import {
  PARKED,
  STREAMS,
  type Checkpoint,
  type Generation,
  type GenerationId,
  type ReadModels,
  type Write,
} from '../../../src/read-models/read-models';
import { createAndOpen } from '../../support/generations';

/** A fresh, empty store, and what the suites do to it. */
export interface ContractStore {
  readonly readModels: ReadModels;
  /** Opens the same store once more, as another process would. The suites close it. */
  reopen(): Promise<ReadModels>;
  /** Opens a store that accepts at most this many bytes in one commit. */
  openWithin(maxCommitBytes: number): Promise<ReadModels>;
  /** Counts write points from now on and makes the k-th of them fail, once. */
  failAt(k: number): void;
  /** How many write points were reached since then, including the failing one. */
  reached(): number;
  /** Lets time pass for the store, or sets its clock back. */
  later(ms: number): Promise<void>;
  earlier(ms: number): Promise<void>;
}

export const LOG = '7d0d0c0e-7f0b-4f4e-8c59-6a2f3f1e9a01';
export const ONE = '11111111-1111-4111-8111-111111111111';
export const TWO = '22222222-2222-4222-8222-222222222222';

export const collections: readonly Collection[] = [
  {
    name: 'notes',
    indexes: { by_shelf: ['shelf', 'place'], by_colour: ['colour'], on_shelf: ['shelf', 'place'] },
    numbered: { on_shelf: 'moment' },
  },
  { name: 'counts', indexes: {} },
];

export const id = (projection: string, version = 1, generation = 'one'): GenerationId => ({
  projection,
  version,
  generation,
});

export const at = (position: number): Checkpoint => ({
  position: String(position).padStart(16, '0'),
  eventId: `00000000-0000-4000-8000-${String(position).padStart(12, '0')}`,
});

export const put = (tenantId: string, collection: string, key: string, document: Document): Write => ({
  tenantId,
  collection,
  key,
  document,
});
export const note = (tenantId: string, key: string, document: Document): Write =>
  put(tenantId, 'notes', key, document);
export const gone = (tenantId: string, collection: string, key: string): Write => ({
  tenantId,
  collection,
  key,
  document: undefined,
});

/** Everything visible in a generation. The control state is read first, which completes a partial commit. */
export const stateOf = async (generation: Generation) => {
  const control = await generation.control();
  const documents = [];
  for (const collection of ['notes', 'counts', PARKED, STREAMS])
    for (const row of await generation.reader.scan(collection, 1_000)) documents.push([collection, row]);
  const found = await Promise.all(
    [ONE, TWO].map((tenant) => generation.reader.find(tenant, 'notes', { index: 'by_shelf', limit: 1_000 })),
  );
  return { control, documents, found };
};

/** The old state of the failure cases, and the commit that leads to the new one. */
export const before: readonly Write[] = [
  note(ONE, 'kept', { shelf: 'a', place: 1 }),
  note(ONE, 'changed', { shelf: 'a', place: 2, text: 'old' }),
  note(ONE, 'removed', { shelf: 'a', place: 3 }),
  put(ONE, 'counts', 'all', { count: 3 }),
  put(TWO, 'counts', 'removed', { count: 1 }),
  put(TWO, PARKED, 'tenant', { reason: 'old' }),
  put(ONE, STREAMS, 'tenant', { revision: 1 }),
];
export const change: readonly Write[] = [
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

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** What the suites work with: a fresh store for each test. */
export interface Harness {
  readonly store: ContractStore;
  /** The same store as seen by another process. */
  again(): Promise<ReadModels>;
  /** Only opens it. */
  openIn(readModels: ReadModels, generation?: GenerationId): Promise<Generation>;
  /** Opens it, after creating it if there is none. */
  createIn(readModels: ReadModels, generation?: GenerationId): Promise<Generation>;
  /** An empty generation. */
  fresh(): Promise<Generation>;
  /** One with these documents. */
  filled(...writes: Write[]): Promise<Generation>;
  closeAll(): Promise<void>;
}

export const contractHarness = (open: () => Promise<ContractStore>): Harness => {
  let store: ContractStore;
  let opened: ReadModels[] = [];
  const closeAll = async (): Promise<void> => {
    for (const readModels of opened.splice(0)) await readModels.close();
  };
  const openIn: Harness['openIn'] = (readModels, generation = id('notes')) =>
    readModels.open(generation, collections);
  const createIn: Harness['createIn'] = (readModels, generation = id('notes')) =>
    createAndOpen(readModels, generation, collections, LOG);
  const fresh = () => createIn(store.readModels);
  beforeEach(async () => {
    store = await open();
    opened = [store.readModels];
  });
  afterEach(closeAll);
  return {
    get store() {
      return store;
    },
    again: async () => {
      const readModels = await store.reopen();
      opened.push(readModels);
      return readModels;
    },
    openIn,
    createIn,
    fresh,
    filled: async (...writes) => {
      const generation = await fresh();
      expect(await generation.commit(0, at(1), writes)).toBe(true);
      return generation;
    },
    closeAll,
  };
};
