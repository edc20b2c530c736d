import { closeSync, existsSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { PROGRESS, PROGRESS_KEY, type Collection } from '../../../projections/projector';
import { isoNow, monotonicMs } from '../../async/clock';
import { turns } from '../../async/concurrency';
import { codeOf, fault, messageOf } from '../../fault';
import * as sqlite from '../../sqlite/database';
import { TIMES } from '../../times';
import {
  furtherOf,
  isFreedTooEarly,
  isSameProgress,
  marksChangedBy,
  type Advanced,
  type Control,
  type Progress,
  type ReadModelSet,
  type TenantCommit,
  type Write,
} from '../read-models';
import {
  createIndexes,
  createTables,
  setReader,
  storedField,
  storedText,
  writesTo,
  type SetReader,
  type StoredControl,
} from './set-reader';

/** A checkpoint of a build writes each page once, however many commits changed it. The pages of all keys are cached. */
const FOR_BUILDING = 'PRAGMA wal_autocheckpoint = 32768; PRAGMA cache_size = -65536';

/** Appends wait for checkpoints, since they share the writing thread; but more frequent ones take longer together. */
const FOR_PROJECTING = 'PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -16384';

export interface SetAddress {
  readonly id: string;
  readonly path: string;
  readonly collections: ReadonlyMap<string, Collection>;
  /** How long a writer waits for another process's lock. */
  readonly busyMs: number;
  readonly isBuild: boolean;
}

/** A set and its file, which is opened when it is used, and again after it was closed. */
export interface SetFile extends ReadModelSet {
  /** The control state as of now. Undefined: the set certainly does not exist, or is being removed. */
  look(): StoredControl | undefined;
  /** Runs the work under the write lock of the file and commits what it put. FULL: synced. */
  hold<T>(
    work: (now: StoredControl, put: (change: Partial<StoredControl>) => void) => T | Promise<T>,
    sync?: 'NORMAL' | 'FULL',
  ): Promise<T>;
  /** Waits for work that was begun. */
  close(): Promise<void>;
}

/** Makes an empty set without secondary indexes, private to its owner. */
export const createSet = (path: string, collections: SetAddress['collections'], log: string): void => {
  closeSync(openSync(path, 'wx', 0o600));
  const db = sqlite.openForWriting(path, 'NORMAL');
  const control: Control = { log, marks: 0, renewedAt: isoNow() };
  sqlite.inTransaction(db, () => {
    db.exec(createTables([...collections.values()]));
    db.prepare('INSERT INTO control VALUES (1, ?)').run(JSON.stringify(control));
  });
  db.close();
};

/** An empty file with this name says that the set beside it is damaged. Nothing could be written into the set itself. */
export const damagedMarkOf = (path: string): string => `${path}-damaged`;

const markAsDamaged = (path: string): void => {
  try {
    if (existsSync(path)) closeSync(openSync(damagedMarkOf(path), 'a', 0o600));
  } catch {
    // Whoever meets the damage again tries again.
  }
};

/** Errors of the driver and of the file system say where they happened. A set in which damage is found counts as absent. */
export const explaining = async <T>(path: string, work: () => T | Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (!/^E[A-Z_]+$/.test(codeOf(error) ?? '')) throw error;
    const isDamaged = sqlite.isDamagedFile(error, path);
    if (isDamaged) markAsDamaged(path);
    const why = `The read models in ${path} failed: ${messageOf(error)}.`;
    throw fault('read_models_unavailable', why, { isDamaged });
  }
};

/** An outcome for work on a set that is gone. */
export const ifRemoved =
  <T>(outcome: () => T) =>
  (error: unknown): T => {
    if (codeOf(error) !== 'read_model_set_removed') throw error;
    return outcome();
  };

/** Never waits inside SQLite, so that other work of this thread goes on. */
const begin = async (db: sqlite.Database, { path, busyMs }: SetAddress): Promise<void> => {
  for (const end = monotonicMs() + busyMs; ; await delay(TIMES.busyRetryMs))
    try {
      return db.exec('BEGIN IMMEDIATE');
    } catch (error) {
      if (!sqlite.isBusy(error)) throw error;
      if (monotonicMs() >= end) throw fault('read_models_busy', `${path} is locked by another process.`);
    }
};

const progressWrite = (tenantId: string, progress: Progress): Write => ({
  tenantId,
  collection: PROGRESS.name,
  key: PROGRESS_KEY,
  document: { ...progress },
  isNew: false,
});

const ifFree = (insert: () => unknown): void => {
  try {
    insert();
  } catch (error) {
    throw sqlite.isTaken(error) ? fault('document_exists', messageOf(error)) : error;
  }
};

/** Writes with `get`, which returns nothing here, since the result object of `run` would be a third of a row's cost. */
const writerOf = ({ collections }: SetAddress) => {
  const tables = new Map(Array.from(collections, ([name, collection]) => [name, writesTo(collection)]));
  return ({ prepared, numberOf }: SetReader, { tenantId, progress, writes }: TenantCommit): void => {
    const add = 'INSERT INTO tenants (tenant) VALUES (?) RETURNING number';
    const tenant = numberOf(tenantId) ?? Number(prepared(add).get(tenantId)?.['number']);
    for (const { collection, key, document, isNew } of [...writes, progressWrite(tenantId, progress)]) {
      const table = tables.get(collection);
      if (table === undefined) throw new Error(`There is no collection ${collection}.`);
      if (document === undefined) prepared(table.remove).get(tenant, storedText(key));
      else {
        const fields = table.fields.map((field) => storedField(document[field]));
        const statement = prepared(isNew ? table.insert : table.upsert);
        ifFree(() => statement.get(tenant, storedText(key), JSON.stringify(document), ...fields));
      }
    }
  };
};

const controlOf = ({ furthest: _furthest, ...control }: StoredControl): Control => control;

/** One connection that reads, and so never waits for a writer, and one that writes. */
const connectionsOf = ({ id, path, collections, isBuild }: SetAddress) => {
  const isStillThere = sqlite.stillThere(path);
  /** Where a damaged set has a successor, it leads there as long as it can be read. */
  const isThere = ({ next, removed }: StoredControl): boolean =>
    isStillThere() && removed !== true && (next !== undefined || !existsSync(damagedMarkOf(path)));
  let reading: SetReader | undefined;
  let writing: SetReader | undefined;
  const reader = (): SetReader => (reading ??= setReader(sqlite.openForReading(path), collections));
  const look = (on = reader): StoredControl | undefined => {
    try {
      const control = on().control();
      return isThere(control) ? control : undefined;
    } catch (error) {
      if (sqlite.isDamagedFile(error, path)) return undefined;
      throw error;
    }
  };
  const mustLook = (on = reader): StoredControl => {
    const control = look(on);
    if (control === undefined) throw fault('read_model_set_removed', `There is no set ${id} any more.`);
    return control;
  };
  const openWriter = (): SetReader => {
    mustLook();
    const db = sqlite.openForWriting(path, 'NORMAL');
    db.exec(isBuild ? FOR_BUILDING : FOR_PROJECTING);
    sqlite.neverWait(db);
    return setReader(db, collections);
  };
  const close = (): void => {
    reading?.db.close();
    if (writing !== undefined) sqlite.checkpointAndClose(writing.db);
    reading = undefined;
    writing = undefined;
  };
  return {
    reader,
    writer: () => (writing ??= openWriter()),
    /** Inside a transaction, the one that has it: another one would begin a transaction for each question. */
    current: () => (writing?.db.isTransaction === true ? writing : reader()),
    look,
    mustLook,
    close,
  };
};

type Connections = ReturnType<typeof connectionsOf>;

const holding =
  (address: SetAddress, { writer, mustLook }: Connections): SetFile['hold'] =>
  async (work, sync = 'NORMAL') => {
    const { db, prepared, forget } = writer();
    if (sync === 'FULL') db.exec('PRAGMA synchronous = FULL');
    await begin(db, address);
    try {
      const now = mustLook(writer);
      const result = await work(now, (change) => {
        prepared('UPDATE control SET state = ?').get(JSON.stringify({ ...now, ...change }));
      });
      db.exec('COMMIT');
      return result;
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK');
      forget();
      throw error;
    } finally {
      if (sync === 'FULL') db.exec('PRAGMA synchronous = NORMAL');
    }
  };

/** In the transaction of `hold`. */
const advanceIn = async (
  connection: SetReader,
  write: ReturnType<typeof writerOf>,
  now: StoredControl,
  put: (change: Partial<StoredControl>) => void,
  [before, work, to]: Parameters<ReadModelSet['advance']>,
): Promise<Advanced> => {
  if (now.next !== undefined) return 'superseded';
  const outcomes = new Map<string, 'done' | 'overtaken'>();
  const found = connection.progress([...before.keys()]);
  for (const [i, [tenantId, known]] of [...before].entries())
    outcomes.set(tenantId, isSameProgress(known, found[i]) ? 'done' : 'overtaken');
  const unmoved = [...before.keys()].filter((tenantId) => outcomes.get(tenantId) === 'done');
  const commits = (await work(unmoved)).filter((commit) => {
    const isEarly = isFreedTooEarly(before.get(commit.tenantId), commit, now.to);
    if (isEarly) outcomes.set(commit.tenantId, 'overtaken');
    return !isEarly;
  });
  const isWhole = [...outcomes.values()].every((outcome) => outcome === 'done');
  const moved = isWhole ? furtherOf(now.to, to) : now.to;
  if (commits.length === 0 && moved === now.to) return outcomes;
  for (const commit of commits) write(connection, commit);
  const furthest = commits.reduce((most, { head }) => furtherOf(most, head), furtherOf(now.furthest, moved));
  const changes = commits.map((commit) => marksChangedBy(before.get(commit.tenantId), commit));
  const marks = changes.reduce((sum, change) => sum + change, now.marks);
  const heads = { ...(moved && { to: moved }), ...(furthest && { furthest }) };
  put({ marks, renewedAt: isoNow(), ...heads });
  return outcomes;
};

export const setFile = (address: SetAddress): SetFile => {
  const { id, path, collections } = address;
  const connections = connectionsOf(address);
  const { reader, writer, current, look, mustLook, close } = connections;
  const ownTurn = turns(1);
  /** A connection has at most one transaction, so work that writes takes turns. */
  const inTurn = <T>(work: () => T | Promise<T>): Promise<T> => ownTurn(() => explaining(path, work));
  const holdNow = holding(address, connections);
  const write = writerOf(address);
  const hold: SetFile['hold'] = (...work) => inTurn(() => holdNow(...work));
  const ask = <T>(question: () => T): Promise<T> => explaining(path, question);
  return {
    id,
    look,
    hold,
    close: () => inTurn(close),
    control: () => ask(() => controlOf(mustLook())),
    get: (...scope) => ask(() => reader().get(...scope)),
    find: (...scope) => ask(() => reader().find(...scope)),
    at: (...scope) => ask(() => reader().at(...scope)),
    scan: (...scope) => ask(() => reader().scan(...scope)),
    load: (keys) => ask(() => current().load(keys)),
    furthest: () => ask(() => mustLook().furthest),
    progress: (tenantIds) => ask(() => reader().progress(tenantIds)),
    parked: (...scope) => ask(() => reader().parked(...scope)),
    lastOf: (lines) => ask(() => current().lastOf(lines)),
    advance: (...asked) =>
      hold((now, put) => advanceIn(writer(), write, now, put, asked)).catch(ifRemoved(() => 'superseded')),
    renew: () =>
      hold((_, put) => put({ renewedAt: isoNow() }))
        .then(() => true)
        .catch(ifRemoved(() => false)),
    finish: async () => {
      for (const index of [...collections.values()].flatMap(createIndexes)) {
        await hold((_, put) => {
          writer().db.exec(index);
          put({ renewedAt: isoNow() });
        });
        await turn();
      }
      await inTurn(() => {
        writer().db.exec(FOR_PROJECTING);
        writer().db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
        sqlite.syncFile(dirname(path));
      });
    },
  };
};
