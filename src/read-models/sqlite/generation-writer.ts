import type { Collection, Document } from '../../../projections/projector';
import {
  closeTidily,
  inTransaction,
  openForWriting,
  waitBriefly,
  type Database,
} from '../../sqlite/database';
import { PARKED, STREAMS, type Checkpoint, type DocumentKey } from '../read-models';
import { generationReader } from './generation-reader';
import type { Field } from './stored-text';
import { createHeap, createIndexes, createTenants } from './tables';
import { tableWriter, type TableWriter } from './table-writer';
import type { CollectionWrites, Writes } from './writes';

export interface GenerationWriter {
  /** Creates the keys and indexes that are missing. */
  finish(): void;
  /** Also while keys are missing: those that are needed are made first. */
  load(keys: readonly DocumentKey[]): readonly (Document | undefined)[];
  commit(n: number, to: Checkpoint | undefined, writes: Writes): boolean;
  close(): void;
}

/** Called before every single step of a commit that changes the file; the contract suite makes it fail. */
export type OnWrite = () => void;

/** Rows arrive in log order, their keys do not: with little memory nearly every row would touch the disk. */
const LARGE_FILE = 'PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = 8192;';

/** The number of a tenant in this file, made at its first document. Forgotten with the transaction that failed. */
const tenantNumbers = (db: Database) => {
  const numbers = new Map<string, number>();
  const find = db.prepare('SELECT number FROM tenants WHERE tenant = ?');
  const add = db.prepare('INSERT INTO tenants (tenant) VALUES (?)');
  return {
    of: (tenantId: string): number => {
      const known = numbers.get(tenantId);
      if (known !== undefined) return known;
      const found = find.get(tenantId) as { number: number } | undefined;
      const number = found?.number ?? Number(add.run(tenantId).lastInsertRowid);
      if (numbers.size >= MOST_NUMBERS) numbers.clear();
      numbers.set(tenantId, number);
      return number;
    },
    forget: (): void => numbers.clear(),
  };
};

const MOST_NUMBERS = 100_000;

/** Who opens what is there does not wait for its writer. */
const create = (db: Database, collections: readonly Collection[], log: string): void => {
  const made = db.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'control'`);
  if (made.get() !== undefined) return;
  inTransaction(db, () => {
    if (made.get() !== undefined) return;
    db.exec(`CREATE TABLE control (
      only INTEGER PRIMARY KEY CHECK (only = 1), n INTEGER NOT NULL, position TEXT, event_id TEXT, log TEXT NOT NULL
    ) STRICT;`);
    db.prepare('INSERT INTO control VALUES (1, 0, NULL, NULL, ?)').run(log);
    db.exec(createTenants);
    for (const collection of collections) db.exec(createHeap(collection));
  });
};

/** The writing side of one generation's file. One transaction is the commit. */
const generationWriter = (
  db: Database,
  collections: readonly Collection[],
  log: string,
  isBuild: boolean,
  onWrite: OnWrite,
): GenerationWriter => {
  db.exec(LARGE_FILE);
  create(db, collections, log);
  const tables = new Map(collections.map((collection) => [collection.name, tableWriter(db, collection)]));
  const index = (): void => {
    for (const table of tables.values()) table.haveKeys();
    for (const statement of collections.flatMap(createIndexes)) db.exec(statement);
  };
  if (!isBuild) index();
  // These are asked for at any time, and the latter changes with every batch.
  for (const collection of [PARKED, STREAMS]) tables.get(collection)?.haveKeys();
  waitBriefly(db);
  const tenants = tenantNumbers(db);
  const reader = generationReader(db, collections);
  const current = db.prepare('SELECT n FROM control');
  const stay = db.prepare('UPDATE control SET n = n + 1');
  const move = db.prepare('UPDATE control SET n = n + 1, position = ?, event_id = ?');

  const tableOf = (collection: string): TableWriter => {
    const table = tables.get(collection);
    if (table === undefined) throw new Error(`There is no collection ${collection}.`);
    return table;
  };

  const writeAll = ({ collection, areNew, flat }: CollectionWrites): void => {
    const { width, put, remove } = tableOf(collection);
    const row: Field[] = [];
    for (let at = 0; at < flat.length; at += width) {
      onWrite();
      const tenant = tenants.of(flat[at] as string);
      row[0] = tenant;
      for (let i = 1; i < width; i += 1) row[i] = flat[at + i] as Field;
      if (row[2] === null) remove(tenant, row[1] as string);
      else put(row, areNew);
    }
  };

  const commitAll = (n: number, to: Checkpoint | undefined, writes: Writes): boolean => {
    if ((current.get() as { n: number }).n !== n) return false;
    for (const tenantId of writes.tenants) tenants.of(tenantId);
    for (const some of writes.collections) writeAll(some);
    onWrite();
    if (to === undefined) stay.run();
    else move.run(to.position, to.eventId);
    return true;
  };

  /** What was seen in a transaction that was undone is not so. */
  const orForget = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      tenants.forget();
      reader.forget();
      for (const table of tables.values()) table.forget();
      throw error;
    }
  };

  return {
    finish: () => orForget(index),
    load: (keys) =>
      orForget(() => {
        for (const collection of new Set(keys.map((key) => key.collection))) tableOf(collection).haveKeys();
        return reader.load(keys);
      }),
    commit: (n, to, writes) =>
      orForget(() =>
        inTransaction(db, () => {
          for (const table of tables.values()) table.begin();
          const isDone = commitAll(n, to, writes);
          if (isDone) onWrite();
          return isDone;
        }),
      ),
    close: () => closeTidily(db),
  };
};

/** A file that is busy is tried again: whoever fails leaves nothing open. */
export const openGenerationWriter = (
  path: string,
  collections: readonly Collection[],
  log: string,
  isBuild: boolean,
  onWrite: OnWrite = () => undefined,
): GenerationWriter => {
  const db = openForWriting(path, 'NORMAL');
  try {
    return generationWriter(db, collections, log, isBuild, onWrite);
  } catch (error) {
    db.close();
    throw error;
  }
};
