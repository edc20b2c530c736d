import { statSync } from 'node:fs';
import type { Collection, Document } from '../../../projections/projector';
import {
  checkpointAndClose,
  inTransaction,
  openForWriting,
  neverWait,
  type Database,
} from '../../sqlite/database';
import { lost } from '../damage';
import type { Checkpoint, DocumentKey } from '../read-models';
import { generationReader, type GenerationReader } from './generation-reader';
import type { Field } from '../stored-text';
import { createIndexes, createTable, createTenants, fieldsOf, removeFrom, upsertInto } from './tables';
import type { CollectionWrites, Writes } from './writes';

export interface GenerationWriter {
  /** Creates missing indexes. */
  finish(): void;
  load(keys: readonly DocumentKey[]): readonly (Document | undefined)[];
  commit(n: number, to: Checkpoint | undefined, writes: Writes): boolean;
  /**
   * Throws `contents_lost` if the file lacks pages after a complete checkpoint. Before that it may: a checkpoint that a
   * reader holds up leaves pages in the `-wal` file.
   */
  checkSize(): void;
  close(): void;
}

/** Called before every step of a commit that changes the file. The contract suite makes it fail. */
export type OnWrite = () => void;

/**
 * A commit of a full batch changes thousands of pages. A build keeps up to 128 MB of them in the `-wal` file, so that a
 * checkpoint writes each page once, however many commits changed it. Rows arrive in log order, but their keys are random:
 * the cache has room for all pages of the keys, 60 MB for a million.
 */
const FOR_BUILDING = 'PRAGMA wal_autocheckpoint = 32768; PRAGMA cache_size = -65536';

/** Small checkpoints of 4 MB, as by default: appends wait for them, since they share the writing thread. */
const FOR_PROJECTING = 'PRAGMA wal_autocheckpoint = 1000; PRAGMA cache_size = -16384';

export interface WriterOptions {
  readonly collections: readonly Collection[];
  readonly isBuild: boolean;
  /** The log of a new generation. Omitted: it was created before, so an empty file has lost its contents. */
  readonly log?: string;
  readonly onWrite?: OnWrite | undefined;
}

/** Nobody else creates it meanwhile: the caller has the lock of the registry, and its id is random. */
const create = (db: Database, { collections, log }: WriterOptions): void => {
  if (db.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'control'`).get() !== undefined) return;
  if (log === undefined) throw lost('it is empty.');
  inTransaction(db, () => {
    db.exec(`CREATE TABLE control (
      only INTEGER PRIMARY KEY CHECK (only = 1), n INTEGER NOT NULL, position TEXT, event_id TEXT, log TEXT NOT NULL
    ) STRICT;`);
    db.prepare('INSERT INTO control VALUES (1, 0, NULL, NULL, ?)').run(log);
    db.exec(createTenants);
    for (const collection of collections) db.exec(createTable(collection));
  });
};

/** What writes the rows of one collection. */
const tableWriter = (db: Database, collection: Collection) => ({
  /** The number of values per row: tenant number, key, document and indexed fields. */
  width: 3 + fieldsOf(collection).length,
  put: db.prepare(upsertInto(collection)),
  remove: db.prepare(removeFrom(collection)),
});

interface File {
  readonly db: Database;
  readonly tables: ReadonlyMap<string, ReturnType<typeof tableWriter>>;
  readonly reader: GenerationReader;
  readonly onWrite: OnWrite;
}

/** The number of a tenant in this file, assigned with its first document. */
const tenantNumber = ({ reader }: File, tenantId: string): number =>
  reader.numberOf(tenantId) ??
  Number(reader.prepared('INSERT INTO tenants (tenant) VALUES (?)').run(tenantId).lastInsertRowid);

/** Writes with `get`, which returns nothing here, since the result object of `run` would be a third of a row's cost. */
const writeAll = (file: File, { collection, flat }: CollectionWrites): void => {
  const table = file.tables.get(collection);
  if (table === undefined) throw new Error(`There is no collection ${collection}.`);
  const { width, put, remove } = table;
  const row: Field[] = [];
  for (let at = 0; at < flat.length; at += width) {
    file.onWrite();
    const tenant = tenantNumber(file, flat[at] as string);
    row[0] = tenant;
    for (let i = 1; i < width; i += 1) row[i] = flat[at + i] as Field;
    if (row[2] === null) remove.get(tenant, row[1]);
    else put.get(...row);
  }
};

const commit = (file: File, n: number, to: Checkpoint | undefined, writes: Writes): boolean =>
  inTransaction(file.db, () => {
    const { reader, onWrite } = file;
    if (reader.control().n !== n) return false;
    for (const group of writes) writeAll(file, group);
    onWrite();
    if (to === undefined) reader.prepared('UPDATE control SET n = n + 1').run();
    else
      reader
        .prepared('UPDATE control SET n = n + 1, position = ?, event_id = ?')
        .run(to.position, to.eventId);
    onWrite();
    return true;
  });

/** Counts the pages first: what others commit meanwhile is in the WAL only. */
const checkSize = (db: Database): void => {
  const { pages, bytes } = db
    .prepare('SELECT page_count AS pages, page_size AS bytes FROM pragma_page_count, pragma_page_size')
    .get() as { readonly pages: number; readonly bytes: number };
  const { busy, log, checkpointed } = db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() as {
    readonly busy: number;
    readonly log: number;
    readonly checkpointed: number;
  };
  const isWhole = busy === 0 && log === checkpointed;
  if (isWhole && statSync(db.location() ?? '').size < pages * bytes) throw lost('it is cut off.');
};

const generationWriter = (db: Database, options: WriterOptions): GenerationWriter => {
  const { collections, isBuild, onWrite = () => undefined } = options;
  create(db, options);
  const tables = new Map(collections.map((collection) => [collection.name, tableWriter(db, collection)]));
  const finish = (): void => {
    for (const statement of collections.flatMap(createIndexes)) db.exec(statement);
    db.exec(FOR_PROJECTING);
  };
  if (isBuild) db.exec(FOR_BUILDING);
  else finish();
  neverWait(db);
  const reader = generationReader(db, collections);
  const file: File = { db, tables, reader, onWrite };

  /** After a rollback, the caches of the transaction are stale. */
  const orForget = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      reader.forget();
      throw error;
    }
  };

  return {
    finish: () => orForget(finish),
    load: reader.load,
    commit: (n, to, writes) => orForget(() => commit(file, n, to, writes)),
    checkSize: () => checkSize(db),
    close: () => checkpointAndClose(db),
  };
};

/** Opening a busy file is retried, so a failure must leave nothing open. */
export const openGenerationWriter = (path: string, options: WriterOptions): GenerationWriter => {
  const db = openForWriting(path, 'NORMAL');
  try {
    return generationWriter(db, options);
  } catch (error) {
    db.close();
    throw error;
  }
};
