import type { Collection } from '../../../projections/projector';
import { inTransaction, type Database } from '../../sqlite/database';
import type { Field } from '../stored-text';
import { fieldsOf, findKeys, giveKeys, insertIntoHeap, removeFrom, upsertInto } from './tables';

/**
 * Writes the rows of one collection. While it is being built it is a heap, until somebody needs its keys; to write a row
 * that certainly does not exist yet takes none.
 */
export interface TableWriter {
  /** How many values make a row: the number of its tenant, its key, its document, and its fields. */
  readonly width: number;
  put(row: readonly Field[], isNew: boolean): void;
  remove(tenant: number, key: string): void;
  /** Creates the keys if they are missing. */
  haveKeys(): void;
  /** A transaction begins. Another process may have created the keys since the last one; none can until this one ends. */
  begin(): void;
  /** A transaction was undone, and perhaps the keys with it. */
  forget(): void;
}

/** Rows are written with `get`, which returns nothing here: the result of `run` would be a third of the cost of a row. */
export const tableWriter = (db: Database, collection: Collection): TableWriter => {
  const keys = db.prepare(findKeys(collection));
  const prepareHeap = () => db.prepare(insertIntoHeap(collection));
  const prepareKeyed = () => ({
    upserting: db.prepare(upsertInto(collection)),
    removing: db.prepare(removeFrom(collection)),
  });
  let heap: ReturnType<typeof prepareHeap> | undefined;
  let keyed: ReturnType<typeof prepareKeyed> | undefined;

  const areMissing = (): boolean => keys.get() === undefined;

  /** Another process may have created them while this one waited for the lock. */
  const makeKeys = (): void => {
    if (areMissing()) db.exec(giveKeys(collection));
  };

  const haveKeys = (): NonNullable<typeof keyed> => {
    if (keyed !== undefined) return keyed;
    if (areMissing())
      if (db.isTransaction) makeKeys();
      else inTransaction(db, makeKeys);
    heap = undefined;
    return (keyed = prepareKeyed());
  };

  const look = (): void => {
    if (areMissing()) heap = prepareHeap();
    else keyed = prepareKeyed();
  };

  return {
    width: 3 + fieldsOf(collection).length,
    put: (row, isNew) => {
      if (heap === undefined && keyed === undefined) look();
      if (isNew && heap !== undefined) heap.get(...row);
      else haveKeys().upserting.get(...row);
    },
    remove: (tenant, key) => void haveKeys().removing.get(tenant, key),
    haveKeys: () => void haveKeys(),
    begin: () => {
      if (heap !== undefined && !areMissing()) heap = undefined;
    },
    forget: () => {
      heap = undefined;
      keyed = undefined;
    },
  };
};
