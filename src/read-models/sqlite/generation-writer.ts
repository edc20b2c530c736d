import type { Collection, Document } from '../../../projections/projector';
import {
  checkpointAndClose,
  inTransaction,
  openForWriting,
  neverWait,
  type Database,
} from '../../sqlite/database';
import { lost } from '../damage';
import { PARKED, STREAMS, type Checkpoint, type DocumentKey } from '../read-models';
import { generationReader, type GenerationReader } from './generation-reader';
import type { Field } from '../stored-text';
import { createHeap, createIndexes, createTenants } from './tables';
import { tableWriter, type TableWriter } from './table-writer';
import type { CollectionWrites, Writes } from './writes';

export interface GenerationWriter {
  /** Creates missing keys and indexes. */
  finish(): void;
  /** Creates the keys that it needs if they are missing. */
  load(keys: readonly DocumentKey[]): readonly (Document | undefined)[];
  commit(n: number, to: Checkpoint | undefined, writes: Writes): boolean;
  close(): void;
}

/** Called before every step of a commit that changes the file. The contract suite makes it fail. */
export type OnWrite = () => void;

/**
 * Rows arrive in log order, but their keys are random: with a small cache nearly every row would hit the disk, and a
 * commit of a full batch changes thousands of pages. Up to 128 MB of them stay in the `-wal` file, so that a checkpoint
 * writes each page once, however many commits changed it.
 */
const LARGE_FILE = 'PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = 32768;';

export interface WriterOptions {
  readonly collections: readonly Collection[];
  readonly isBuild: boolean;
  /** The log of a new generation. Omitted: it was created before, so an empty file has lost its contents. */
  readonly log?: string;
  readonly onWrite?: OnWrite | undefined;
}

/** Checks before taking the write lock, so that opening an existing file does not wait for its writer. */
const create = (db: Database, { collections, log }: WriterOptions): void => {
  const findControl = db.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'control'`);
  if (findControl.get() !== undefined) return;
  if (log === undefined) throw lost('it is empty.');
  inTransaction(db, () => {
    if (findControl.get() !== undefined) return;
    db.exec(`CREATE TABLE control (
      only INTEGER PRIMARY KEY CHECK (only = 1), n INTEGER NOT NULL, position TEXT, event_id TEXT, log TEXT NOT NULL
    ) STRICT;`);
    db.prepare('INSERT INTO control VALUES (1, 0, NULL, NULL, ?)').run(log);
    db.exec(createTenants);
    for (const collection of collections) db.exec(createHeap(collection));
  });
};

interface File {
  readonly db: Database;
  readonly tables: ReadonlyMap<string, TableWriter>;
  readonly reader: GenerationReader;
  readonly onWrite: OnWrite;
}

const tableOf = ({ tables }: File, collection: string): TableWriter => {
  const table = tables.get(collection);
  if (table === undefined) throw new Error(`There is no collection ${collection}.`);
  return table;
};

/** The number of a tenant in this file, assigned with its first document. */
const tenantNumber = ({ reader }: File, tenantId: string): number =>
  reader.numberOf(tenantId) ??
  Number(reader.prepared('INSERT INTO tenants (tenant) VALUES (?)').run(tenantId).lastInsertRowid);

const writeAll = (file: File, { collection, areNew, flat }: CollectionWrites): void => {
  const { width, put, remove } = tableOf(file, collection);
  const row: Field[] = [];
  for (let at = 0; at < flat.length; at += width) {
    file.onWrite();
    const tenant = tenantNumber(file, flat[at] as string);
    row[0] = tenant;
    for (let i = 1; i < width; i += 1) row[i] = flat[at + i] as Field;
    if (row[2] === null) remove(tenant, row[1] as string);
    else put(row, areNew);
  }
};

const commit = (file: File, n: number, to: Checkpoint | undefined, writes: Writes): boolean =>
  inTransaction(file.db, () => {
    const { reader, tables, onWrite } = file;
    for (const table of tables.values()) table.begin();
    if (reader.control().n !== n) return false;
    // In order, so that builds from the same log give tenants the same numbers.
    for (const tenantId of writes.tenants) tenantNumber(file, tenantId);
    for (const group of writes.collections) writeAll(file, group);
    onWrite();
    if (to === undefined) reader.prepared('UPDATE control SET n = n + 1').run();
    else
      reader
        .prepared('UPDATE control SET n = n + 1, position = ?, event_id = ?')
        .run(to.position, to.eventId);
    onWrite();
    return true;
  });

const generationWriter = (db: Database, options: WriterOptions): GenerationWriter => {
  const { collections, isBuild, onWrite = () => undefined } = options;
  db.exec(LARGE_FILE);
  create(db, options);
  const tables = new Map(collections.map((collection) => [collection.name, tableWriter(db, collection)]));
  const finish = (): void => {
    for (const table of tables.values()) table.ensureKeys();
    for (const statement of collections.flatMap(createIndexes)) db.exec(statement);
  };
  if (!isBuild) finish();
  // These can be scanned at any time, and STREAMS changes with every batch.
  for (const collection of [PARKED, STREAMS]) tables.get(collection)?.ensureKeys();
  neverWait(db);
  const reader = generationReader(db, collections);
  const file: File = { db, tables, reader, onWrite };

  /** After a rollback, the caches of the transaction are stale. */
  const orForget = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      reader.forget();
      for (const table of tables.values()) table.forget();
      throw error;
    }
  };

  return {
    finish: () => orForget(finish),
    load: (keys) =>
      orForget(() => {
        for (const collection of new Set(keys.map((key) => key.collection)))
          tableOf(file, collection).ensureKeys();
        return reader.load(keys);
      }),
    commit: (n, to, writes) => orForget(() => commit(file, n, to, writes)),
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
