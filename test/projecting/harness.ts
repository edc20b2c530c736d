import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { type Document, type Projector, compose, type ComposedProjector } from '../../projections/projector';
import { readSetAside } from '../../src/event-log/codec';
import type { Appended, EventLog, NewEvent } from '../../src/event-log/event-log';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import type { Folding, ParkedTenant } from '../../src/projecting/fold-batch';
import { retryDue, type Retrying, parkedTenants } from '../../src/projecting/parked-tenants';
import { projection, readingInPieces, type ProjectionOptions } from '../../src/projecting/project';
import type { DocumentKey, ReadModels, ReadModelSet } from '../../src/read-models/read-models';
import { openForWriting } from '../../src/sqlite/database';
import { memoryReadModels, memoryStore } from '../read-models/memory-read-models';
import { closeAfterwards } from '../support/closing';
import { freshFolder } from '../support/folders';
import { linesProjector, type Happened } from './lines';

export const streams = streamNames();

/** An event as a test writes it. */
export interface GivenEvent {
  readonly type: string;
  readonly data?: Record<string, unknown>;
  readonly metadata?: Record<string, unknown>;
  readonly id?: string;
}

export const settings = { fingerprintTokens: false, deduplicateTokens: false };
export const created = (name = 'A tenant'): GivenEvent => ({
  type: 'TenantCreated',
  data: { name, ownerId: randomUUID(), settings, includedMonthlyActiveTokens: 100 },
});
export const updated = (name: string): GivenEvent => ({ type: 'TenantUpdated', data: { name, settings } });

const newEvent = ({
  type,
  data = {},
  metadata = { version: 1 },
  id = randomUUID(),
}: GivenEvent): NewEvent => ({ id, type, data, metadata });

/** A log whose streams need no revisions from the test. */
export interface TestLog extends EventLog {
  readonly folder: string;
  record(stream: string, ...events: GivenEvent[]): Promise<Appended>;
  /** Inserts a row into the file behind the port's back: text that no append would write. */
  plant(stream: string, row: { type: string; data: string; metadata?: string; id?: string }): string;
  /** Deletes revisions from the file, as a damaged disk or a careless edit would. */
  lose(stream: string, ...revisions: readonly number[]): void;
}

const lastOf = async (log: EventLog, stream: string): Promise<number> => {
  let last = -1;
  for await (const batch of log.readStream(stream)) last = batch.at(-1)?.revision ?? last;
  return last;
};

export const openLog = async (folder = freshFolder()): Promise<TestLog> => {
  const log = await sqliteEventLog(folder, streams);
  closeAfterwards(() => log.close());
  const known = new Map<string, number>();
  const next = async (stream: string) => known.get(stream) ?? (await lastOf(log, stream));
  return {
    ...log,
    folder,
    record: async (stream, ...events) => {
      const at = await next(stream);
      const appended = await log.append(stream, events.map(newEvent), at < 0 ? 'no_stream' : at, 10_000);
      known.set(stream, appended.revision);
      return appended;
    },
    plant: (stream, { type, data, metadata = '{"version":1}', id = randomUUID() }) => {
      const db = openForWriting(join(folder, 'events.db'), 'FULL');
      db.prepare(
        `INSERT INTO events (stream, revision, id, type, data, metadata, recorded_at)
         SELECT ?, COALESCE(MAX(revision), -1) + 1, ?, ?, ?, ?, 1 FROM events WHERE stream = ?`,
      ).run(stream, id, type, data, metadata, stream);
      db.close();
      known.delete(stream);
      return id;
    },
    lose: (stream, ...revisions) => {
      const db = openForWriting(join(folder, 'events.db'), 'FULL');
      const remove = db.prepare('DELETE FROM events WHERE stream = ? AND revision = ?');
      for (const revision of revisions) expect(remove.run(stream, revision).changes).toBe(1);
      db.close();
      known.delete(stream);
    },
  };
};

/** A folder or a database that any number of processes may open. */
export interface Place {
  open(between?: () => Promise<void>): Promise<ReadModels>;
}

/** The store under test. `between` runs between its operations, where it can. */
export const freshPlace = (
  { collections, version }: ComposedProjector,
  now: () => number = Date.now,
): Place => {
  const store = memoryStore();
  return {
    open: async (between) =>
      memoryReadModels({ collections, version, store, now, ...(between === undefined ? {} : { between }) }),
  };
};

export const lines = compose([linesProjector()]);

/** The first set of a place, which is live. */
export const firstSet = async (readModels: ReadModels, log = 'log'): Promise<ReadModelSet> => {
  const set = await readModels.create(log);
  expect(await readModels.succeed(set, undefined)).toBe(true);
  return set;
};

export const NOW = '2026-01-01T00:00:00.000Z';

export const foldingOf = (projector: ComposedProjector = lines, program = '1', now = NOW): Folding => ({
  projector,
  streams,
  program,
  now: () => now,
  setAside: { event: () => false, gapBefore: () => false },
});

/** Projects everything that is in the log. */
export const projectAll = async (
  set: ReadModelSet,
  log: EventLog,
  folding = foldingOf(),
  options: ProjectionOptions = {},
): Promise<void> => {
  const readAfter = readingInPieces((after) => log.readAll({ after }));
  const setAside = await readSetAside({ log, streams });
  expect(await projection(set, readAfter, { ...folding, setAside }, options).toEnd()).toBe('at_end');
};

export const retryAll = async (
  set: ReadModelSet,
  log: EventLog,
  folding = foldingOf(),
  options: Partial<Retrying> = {},
): Promise<void> => {
  const setAside = await readSetAside({ log, streams });
  await retryDue({ log, streams, set, folding: { ...folding, setAside }, ...options });
};

export const parkedIn = async (set: Pick<ReadModelSet, 'scan'>): Promise<readonly ParkedTenant[]> => {
  const parked: ParkedTenant[] = [];
  for await (const tenant of parkedTenants(set)) parked.push(tenant);
  return parked;
};

/** Every document of a set, under `<tenant> <collection> <key>`. */
export const documentsOf = async (
  set: Pick<ReadModelSet, 'scan'>,
  collections: readonly string[],
): Promise<Record<string, Document>> => {
  const all: Record<string, Document> = {};
  for (const collection of collections)
    for (const { tenantId, key, text } of await set.scan(collection, 100_000))
      all[`${tenantId} ${collection} ${key}`] = JSON.parse(text) as Document;
  return all;
};

/** Changes a document behind the engine's back; undefined removes it. */
export const edit = async (
  set: ReadModelSet,
  key: DocumentKey,
  document: Document | undefined,
): Promise<void> => {
  const work = async ({ parked }: { parked: number }) => ({ writes: [{ ...key, document }], parked });
  expect(await set.advance(work)).toBe('done');
};

export const headOf = (tenantId: string): DocumentKey => ({ tenantId, collection: 'heads', key: 'all' });

/** A log, a live set of it, and a history that the test itself records. */
export const replayHarness = async (projectors: readonly Projector[] = [linesProjector()]) => {
  const projector = compose(projectors);
  const log = await openLog();
  let now = Date.parse(NOW);
  const place = freshPlace(projector, () => now);
  const readModels = await place.open();
  const set = await firstSet(readModels, await log.identity());
  const history: Happened[] = [];
  return {
    log,
    streams,
    projector,
    program: '1',
    place,
    readModels,
    set,
    history,
    /** Lets the clock of the store go on. */
    pass: (ms: number): void => void (now += ms),
    /** Appends to the log, and records it in the history. */
    record: async (tenantId: string, ...events: readonly GivenEvent[]): Promise<string> => {
      const { position: last } = await log.record(streams.tenant(tenantId), ...events);
      events.forEach(({ type, data }, i) => {
        const position = String(Number(last) - events.length + 1 + i).padStart(last.length, '0');
        const keyId = data?.['keyId'] as string | undefined;
        history.push({ tenantId, type, position, bad: false, ...(keyId === undefined ? {} : { keyId }) });
      });
      return last;
    },
    catchUp: async (into = set): Promise<ReadModelSet> => {
      await projectAll(into, log, foldingOf(projector));
      return into;
    },
    retry: (options: Partial<Retrying> = {}, program = '1') =>
      retryAll(set, log, foldingOf(projector, program), options),
  };
};

export type ReplayHarness = Awaited<ReturnType<typeof replayHarness>>;

/** A few tenants with a few events each. */
export const someTenants = async (
  { record }: Pick<ReplayHarness, 'record'>,
  count = 3,
): Promise<readonly string[]> => {
  const tenants = Array.from({ length: count }, () => randomUUID());
  for (const tenantId of tenants) await record(tenantId, created(), updated('a'), updated('b'));
  return tenants;
};

/** Yields once to the event loop. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
