import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Document, Projector } from '../../projections/projector';
import { monotonicMs } from '../../src/async/clock';
import type { Appended, EventLog, NewEvent } from '../../src/event-log/event-log';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { batchOf } from '../../src/projecting/batch';
import type { Batches } from '../../src/projecting/consumer';
import { parkedTenants, type ParkedTenant } from '../../src/projecting/parked-tenants';
import { openProjecting, type Projecting } from '../../src/projecting/projecting';
import type { ProjectionRun } from '../../src/projecting/projection-run';
import {
  generationNamed,
  type GenerationId,
  type ReadModels,
  type Scanner,
  type Target,
} from '../../src/read-models/read-models';
import { openForWriting } from '../../src/sqlite/database';
import { closeAfterwards } from '../support/closing';
import { freshFolder } from '../support/folders';
import { isClustered } from '../support/profile';
import { storeUnderTest } from '../support/store-under-test';
import { until } from '../support/waiting';

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

export const newEvent = ({
  type,
  data = {},
  metadata = { version: 1 },
  id = randomUUID(),
}: GivenEvent): NewEvent => ({
  id,
  type,
  data,
  metadata,
});

/** A log whose streams need no revisions from the test. */
export interface TestLog extends EventLog {
  readonly folder: string;
  record(stream: string, ...events: GivenEvent[]): Promise<Appended>;
  /** Inserts a row into the file behind the port's back: text that no append would write. */
  plant(stream: string, row: { type: string; data: string; metadata?: string; id?: string }): string;
  /** Deletes revisions from the file, as a damaged disk or a careless edit would. */
  lose(stream: string, ...revisions: readonly number[]): void;
}

const lastRevision = async (log: EventLog, stream: string): Promise<number> => {
  let last = -1;
  for await (const batch of log.readStream(stream)) last = batch.at(-1)?.revision ?? last;
  return last;
};

export const openLog = async (folder = freshFolder()): Promise<TestLog> => {
  const log = await sqliteEventLog(folder, streams);
  closeAfterwards(() => log.close());
  const known = new Map<string, number>();
  const next = async (stream: string) => known.get(stream) ?? (await lastRevision(log, stream));
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

// A commit takes several round trips there.
if (isClustered) jest.setTimeout(120_000);

/** The generations that this test has created, in order. */
const generations: GenerationId[] = [];
afterEach(() => void generations.splice(0));

/** Ids are random. Numbers the generations of a projection and version in the order of their creation instead. */
export const numbered = (name: string): string => {
  const id = generationNamed(name)!;
  const line = generations.filter(
    ({ projection, version }) => projection === id.projection && version === id.version,
  );
  const at = line.findIndex(({ generation }) => generation === id.generation);
  return `${id.projection}_v${id.version}_${at + 1}`;
};

/** The n-th generation that was created of a projection and version. */
export const nth = (n: number, projection = 'lines', version = 1): GenerationId =>
  generations.filter((id) => id.projection === projection && id.version === version)[n - 1]!;

export const openReadModels: typeof storeUnderTest = async (...dependencies) => {
  const readModels = await storeUnderTest(...dependencies);
  closeAfterwards(() => readModels.close());
  return {
    ...readModels,
    create: (id, ...more) => {
      generations.push(id);
      return readModels.create(id, ...more);
    },
  };
};

/** A whole projecting process, as `src/app/app.ts` creates it. Its errors are kept. */
export const openProcess = async (
  log: EventLog,
  readModels: ReadModels,
  projectors: readonly Projector[],
  program = '1',
): Promise<Projecting & { readonly warnings: string[] }> => {
  const warnings: string[] = [];
  const onError = (what: string, error: unknown) => void warnings.push(`${what} ${(error as Error).message}`);
  const projecting = await openProjecting({ log, streams, readModels, projectors, program, onError });
  closeAfterwards(() => projecting.stop());
  return {
    ...projecting,
    get live() {
      return projecting.live;
    },
    warnings,
  };
};

export const runOf = (
  projector: Projector,
  generation: Target,
  log: EventLog,
  program = '1',
  now = '2026-01-01T00:00:00.000Z',
): ProjectionRun => ({
  projector,
  generation,
  log,
  streams,
  program,
  now: () => now,
  setAside: { event: () => false, gapBefore: () => false },
  moved: () => undefined,
});

/** The batches of a log, as the consumer makes them. */
export const allOf = (log: EventLog): Batches =>
  async function* (after) {
    for await (const batch of log.readAll({ after })) yield batchOf(batch, streams);
  };

export const parkedIn = async (generation: Scanner): Promise<readonly ParkedTenant[]> => {
  const parked: ParkedTenant[] = [];
  for await (const tenant of parkedTenants(generation)) parked.push(tenant);
  return parked;
};

/** Every document of a generation, under `<tenant> <collection> <key>`. */
export const documentsOf = async (
  generation: Scanner,
  collections: readonly string[],
): Promise<Record<string, Document>> => {
  const all: Record<string, Document> = {};
  for (const collection of collections)
    for (const { tenantId, key, document } of await generation.scan(collection, 100_000))
      all[`${tenantId} ${collection} ${key}`] = document;
  return all;
};

/** Yields once to the event loop. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Another process keeps trying to take a lease, for longer than its holder takes it at once. */
export const takenByNobody = async (
  readModels: ReadModels,
  lease: string,
  lastsMs: number,
): Promise<void> => {
  const end = monotonicMs() + lastsMs + 100;
  await until(async () => {
    expect(await readModels.lease([lease], 'somebody else')).toEqual(new Set());
    return monotonicMs() > end;
  });
};
