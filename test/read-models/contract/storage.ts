import { PROGRESS, type Collection, type Document } from '../../../projections/projector';
import type { Head } from '../../../src/event-log/event-log';
import type {
  ParkedTenant,
  Progress,
  ProgressBefore,
  ReadModels,
  ReadModelSet,
  Scanned,
  TenantCommit,
  Write,
} from '../../../src/read-models/read-models';

export interface OpenOptions {
  readonly version: string;
  /** Those of the projectors. Every set has the progress of its tenants besides. */
  readonly collections: readonly Collection[];
  /** How long a set stays that was superseded, or that its builder has not renewed. */
  readonly graceMs?: number;
}

/** An empty storage, for one test or for all tests of a `describe`. */
export interface Storage {
  /** Opens it, as another process would each time. The suites close it. */
  open(options: OpenOptions): Promise<ReadModels>;
  /** Called after everything is closed. */
  discard(): Promise<void>;
}

export const LOG = '7d0d0c0e-7f0b-4f4e-8c59-6a2f3f1e9a01';
export const ONE = '11111111-1111-4111-8111-111111111111';
export const TWO = '22222222-2222-4222-8222-222222222222';

export const COLLECTIONS: readonly Collection[] = [
  {
    name: 'notes',
    indexes: { by_shelf: ['shelf', 'place'], by_colour: ['colour'], on_shelf: ['shelf', 'place'] },
    numbered: { on_shelf: 'moment' },
  },
  {
    name: 'cards',
    indexes: { by_box: ['box', 'number', 'colour'], by_number: ['number'], by_colour: ['colour'] },
  },
  { name: 'counts', indexes: {} },
];

export const at = (position: number): Head => ({
  position: String(position).padStart(16, '0'),
  eventId: `00000000-0000-4000-8000-${String(position).padStart(12, '0')}`,
});

/** A document to be written, whether there was one before or not. */
export type Put = Omit<Write, 'isNew'>;

export const put = (tenantId: string, collection: string, key: string, document: Document): Put => ({
  tenantId,
  collection,
  key,
  document,
});
export const note = (tenantId: string, key: string, document: Document): Put =>
  put(tenantId, 'notes', key, document);
export const deletion = (tenantId: string, collection: string, key: string): Put => ({
  tenantId,
  collection,
  key,
  document: undefined,
});

/** Of a tenant whose last event is at this position. */
export const progressAt = (position: number): Progress => ({
  tenant: position,
  activity: -1,
  position: at(position).position,
});

export const markOf = (tenantId: string, position: number): ParkedTenant => ({
  tenant_id: tenantId,
  event_id: at(position).eventId,
  event_type: 'TenantUpdated',
  position: at(position).position,
  recorded_at: '2026-01-01T00:00:00.000Z',
  cause: 'bad_event',
  reason: 'a "reason" with \0 and 😀',
  since: '2026-01-02T00:00:00.000Z',
  program: '1.0.0',
});

export const beforeIn = async (
  set: ReadModelSet,
  ...tenantIds: readonly string[]
): Promise<ProgressBefore> => {
  const found = await set.progress(tenantIds);
  return new Map(tenantIds.map((tenantId, i) => [tenantId, found[i]]));
};

/** The first write of a document that is not there says so. */
const asWrites = async (set: ReadModelSet, puts: readonly Put[]): Promise<readonly Write[]> => {
  const loaded = await set.load(puts);
  const isSame = (one: Put, other: Put) => one.collection === other.collection && one.key === other.key;
  return puts.map((one, i) => {
    const isFirst = puts.findIndex((other) => isSame(one, other)) === i;
    return { ...one, isNew: isFirst && loaded[i] === undefined };
  });
};

/** Commits these documents of a tenant, as what its event at this position changes. */
export const commitOf = async (
  set: ReadModelSet,
  tenantId: string,
  position: number,
  puts: readonly Put[] = [],
): Promise<TenantCommit> => ({
  tenantId,
  writes: await asWrites(
    set,
    puts.filter((one) => one.tenantId === tenantId),
  ),
  progress: progressAt(position),
  head: at(position),
});

/** Commits these documents of all their tenants together, and moves the position. */
export const advanceBy = async (
  set: ReadModelSet,
  position: number,
  ...puts: readonly Put[]
): Promise<void> => {
  const before = await beforeIn(set, ...new Set(puts.map(({ tenantId }) => tenantId)));
  const work = (tenantIds: readonly string[]) =>
    Promise.all(tenantIds.map((tenantId) => commitOf(set, tenantId, position, puts)));
  const outcomes = await set.advance(before, work, at(position));
  expect(outcomes).toEqual(new Map([...before.keys()].map((tenantId) => [tenantId, 'done'])));
};

/** Everything that a set shows. */
export const contentsOf = async (set: ReadModelSet) => {
  const documents = [];
  for (const collection of [...COLLECTIONS.map(({ name }) => name), PROGRESS.name])
    for (const { text, ...row } of await set.scan(collection, 10_000))
      documents.push({ collection, ...row, document: JSON.parse(text) as unknown });
  return { control: await set.control(), furthest: await set.furthest(), documents };
};

/** All notes, page by page. */
export const pagesOf = async (set: ReadModelSet, limit: number): Promise<readonly Scanned[]> => {
  const rows = [];
  for (let page = await set.scan('notes', limit); page.length > 0;) {
    expect(page.length).toBeLessThanOrEqual(limit);
    rows.push(...page);
    page = await set.scan('notes', limit, page.at(-1));
  }
  return rows;
};

export const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** For one test, or for the tests of a `describe`, beside those for single ones. */
export type NewStorage = (isShared: boolean) => Promise<Storage>;

/** What the suites work with. */
export interface Harness {
  /** The storage of this test, opened by one process. */
  readonly here: ReadModels;
  /** The same storage, opened by another one. */
  again(options?: Partial<OpenOptions>): Promise<ReadModels>;
  /** A finished set with these documents at position 1, live. */
  filled(...puts: readonly Put[]): Promise<ReadModelSet>;
  /** The same for all tests of a `describe`, which only read it. */
  filledOnce(...puts: readonly Put[]): () => ReadModelSet;
  /** A set at this position that is not live. */
  built(position: number, readModels?: ReadModels): Promise<ReadModelSet>;
  /** The live set, as another process has it. */
  there(): Promise<ReadModelSet>;
  closeAll(): Promise<void>;
}

const fill = async (readModels: ReadModels, puts: readonly Put[]): Promise<ReadModelSet> => {
  const set = await readModels.create(LOG);
  await advanceBy(set, 1, ...puts);
  await set.finish();
  expect(await readModels.succeed(set, undefined)).toBe(true);
  return set;
};

export const harnessOf = (newStorage: NewStorage): Harness => {
  let storage: Storage;
  let here: ReadModels;
  let opened: ReadModels[] = [];
  const again: Harness['again'] = async (options = {}) => {
    const readModels = await storage.open({ version: 'one', collections: COLLECTIONS, ...options });
    opened.push(readModels);
    return readModels;
  };
  const closeAll = async (): Promise<void> => {
    for (const readModels of opened.splice(0)) await readModels.close();
  };
  beforeEach(async () => {
    storage = await newStorage(false);
    opened = [];
    here = await again();
  });
  afterEach(async () => {
    await closeAll();
    await storage.discard();
  });
  return {
    get here() {
      return here;
    },
    again,
    filled: (...puts) => fill(here, puts),
    filledOnce: (...puts) => {
      let [shared, readModels, set]: [Storage?, ReadModels?, ReadModelSet?] = [];
      beforeAll(async () => {
        shared = await newStorage(true);
        readModels = await shared.open({ version: 'one', collections: COLLECTIONS });
        set = await fill(readModels, puts);
      });
      afterAll(async () => {
        await readModels?.close();
        await shared?.discard();
      });
      return () => set as ReadModelSet;
    },
    built: async (position, readModels = here) => {
      const set = await readModels.create(LOG);
      await advanceBy(set, position, put(ONE, 'counts', 'n', { count: position }));
      await set.finish();
      return set;
    },
    there: async () => {
      const live = await (await again()).live();
      if (live === undefined) throw new Error('There is no live set.');
      return live.set;
    },
    closeAll,
  };
};
