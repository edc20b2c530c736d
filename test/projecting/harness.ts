import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { compose, type ComposedProjector, type Document, type Projector } from '../../projections/projector';
import type { StreamKind } from '../../src/domain/events';
import type { Appended, EventLog, NewEvent } from '../../src/event-log/event-log';
import { streamNames } from '../../src/event-log/streams';
import { logFollower, readingInPieces, type FollowOptions, type Step } from '../../src/projecting/follow-log';
import { parkedTenants, retryDue } from '../../src/projecting/parked-tenants';
import { tenantProjection, type TenantProjection } from '../../src/projecting/project-tenants';
import { showGroup } from '../../src/projecting/show-tenants';
import type { DocumentKey, ParkedTenant, ReadModels, ReadModelSet } from '../../src/read-models/read-models';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { openForWriting } from '../../src/sqlite/database';
import { closeAfterwards } from '../support/closing';
import { freshFolder } from '../support/folders';
import { inFile, openSqliteLog } from '../support/sqlite-logs';
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
  const log = await openSqliteLog(folder, streams);
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
      const sql = `INSERT INTO events (stream, revision, id, type, data, metadata, recorded_at)
         SELECT ?, COALESCE(MAX(revision), -1) + 1, ?, ?, ?, ?, 1 FROM events WHERE stream = ?`;
      inFile(folder, (db) => db.prepare(sql).run(stream, id, type, data, metadata, stream));
      known.delete(stream);
      return id;
    },
    lose: (stream, ...revisions) => {
      inFile(folder, (db) => {
        const remove = db.prepare('DELETE FROM events WHERE stream = ? AND revision = ?');
        for (const revision of revisions) expect(remove.run(stream, revision).changes).toBe(1);
      });
      known.delete(stream);
    },
  };
};

/** A folder of read models that any number of processes may open. */
export interface Place {
  /** As a process does. A set that is no longer used may be removed after this time. */
  open(graceMs?: number): ReadModels;
  /** Changes a document behind the engine's back; undefined removes it. */
  edit(set: Pick<ReadModelSet, 'id'>, key: DocumentKey, document: Document | undefined): void;
}

export const freshPlace = ({ collections, version }: ComposedProjector): Place => {
  const folder = freshFolder();
  return {
    open: (graceMs = 60_000) => {
      const readModels = sqliteReadModels({ folder, version, collections, graceMs });
      closeAfterwards(() => readModels.close());
      return readModels;
    },
    edit: ({ id }, { tenantId, collection, key }, document) => {
      const db = openForWriting(join(folder, `set-${version}-${id}.db`), 'NORMAL');
      const tenant = '(SELECT number FROM tenants WHERE tenant = ?)';
      const remove = `DELETE FROM docs_${collection} WHERE tenant = ${tenant} AND key = ?`;
      const put = `INSERT INTO docs_${collection} (tenant, key, document) VALUES (${tenant}, ?, ?)
        ON CONFLICT (tenant, key) DO UPDATE SET document = excluded.document`;
      const done =
        document === undefined
          ? db.prepare(remove).run(tenantId, key)
          : db.prepare(put).run(tenantId, key, JSON.stringify(document));
      db.close();
      expect(done.changes).toBe(1);
    },
  };
};

type Pass = (call: () => Promise<unknown>, name: string) => Promise<unknown>;

/** The same store or set, each call of which goes through something. */
export const passing = <T extends object>(subject: T, pass: Pass): T =>
  Object.fromEntries(
    Object.entries(subject).map(([name, value]: [string, unknown]) => {
      if (typeof value !== 'function') return [name, value];
      return [name, (...given: unknown[]) => pass(async () => value(...given), name)];
    }),
  ) as T;

export const lines = compose([linesProjector()]);

/** An old program, which cannot read the name `strange`. */
export const linesWithoutStrange = compose([
  linesProjector((event) => event.type === 'TenantUpdated' && event.data.name === 'strange'),
]);

/** The first set of a place, which is live. */
export const firstSet = async (readModels: ReadModels, log = 'log'): Promise<ReadModelSet> => {
  const set = await readModels.create(log);
  expect(await readModels.succeed(set, undefined)).toBe(true);
  return set;
};

export const NOW = '2026-01-01T00:00:00.000Z';

/** A version of the program, and its clock. */
export interface Program {
  readonly projector: ComposedProjector;
  readonly program: string;
  readonly now: string;
}

export const programOf = (projector = lines, program = '1', now = NOW): Program => ({
  projector,
  program,
  now,
});

export const projectionOf = (
  set: ReadModelSet,
  log: EventLog,
  { now, ...program }: Program = programOf(),
  onParked?: (tenant: ParkedTenant) => void,
): TenantProjection =>
  tenantProjection({ log, streams, ...program }, set, { now: () => now, ...(onParked && { onParked }) });

/** Commits the events of a tenant up to a position, or the first of them. */
export const projectTenant = (projection: TenantProjection, tenantId: string, upTo: string) =>
  showGroup(projection, new Map([[tenantId, upTo]]));

/** Follows a log into a set, step by step, or until there is no more of it. */
export const followerOf = (set: ReadModelSet, log: EventLog, program?: Program, options?: FollowOptions) => {
  const projection = projectionOf(set, log, program);
  const readAfter = readingInPieces((after) => log.readAll({ after }));
  const follow = logFollower({ streams }, readAfter, options);
  const step = (upTo?: string): Promise<Step> => follow(projection, upTo);
  const toEnd = async (): Promise<Step['outcome']> => {
    for (;;) {
      const { outcome } = await step();
      if (outcome === 'at_end' || outcome === 'superseded') return outcome;
    }
  };
  return { step, toEnd };
};

/** Projects everything that is in the log. */
export const projectAll = async (...given: Parameters<typeof followerOf>): Promise<void> =>
  expect(await followerOf(...given).toEnd()).toBe('at_end');

export const retryAll = (
  set: ReadModelSet,
  log: EventLog,
  program?: Program,
  isRequested?: (tenantId: string) => boolean,
): Promise<void> => retryDue(projectionOf(set, log, program), isRequested);

export const parkedIn = async (set: ReadModelSet): Promise<readonly ParkedTenant[]> => {
  const parked: ParkedTenant[] = [];
  for await (const tenant of parkedTenants(set)) parked.push(tenant);
  return parked;
};

/** The last revision of a stream that a set shows. */
export const lastRevision = async (
  set: Pick<ReadModelSet, 'progress'>,
  tenantId: string,
  kind: StreamKind,
): Promise<number> => (await set.progress([tenantId]))[0]?.[kind] ?? -1;

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

export const headOf = (tenantId: string): DocumentKey => ({ tenantId, collection: 'heads', key: 'all' });

/** A log, a live set of it, and a history that the test itself records. */
export const replayHarness = async (projectors: readonly Projector[] = [linesProjector()]) => {
  const projector = compose(projectors);
  const log = await openLog();
  const place = freshPlace(projector);
  const readModels = place.open();
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
    edit: (key: DocumentKey, document: Document | undefined): void => place.edit(set, key, document),
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
      await projectAll(into, log, programOf(projector));
      return into;
    },
    retry: (isRequested?: (tenantId: string) => boolean) =>
      retryAll(set, log, programOf(projector), isRequested),
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

/** A tenant that is parked at an event which nobody can read. */
export const poisoned = async (projectors?: readonly Projector[]) => {
  const harness = await replayHarness(projectors);
  const [tenantId = '', other = ''] = await someTenants(harness);
  const eventId = harness.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
  await harness.record(tenantId, updated('waits'));
  await harness.catchUp();
  return { harness, tenantId, other, eventId };
};

/** Yields once to the event loop. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
