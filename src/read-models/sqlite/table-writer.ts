import type { Collection } from '../../../projections/projector';
import { inTransaction, type Database } from '../../sqlite/database';
import type { Field } from '../stored-text';
import { fieldsOf, findKeys, createKeysOf, insertIntoHeap, removeFrom, upsertInto } from './tables';

/**
 * Writes the rows of one collection. During a build the table is a heap without keys, until a write needs them:
 * inserting a row that certainly does not exist yet does not.
 */
export interface TableWriter {
  /** The number of values per row: tenant number, key, document and indexed fields. */
  readonly width: number;
  put(row: readonly Field[], isNew: boolean): void;
  remove(tenant: number, key: string): void;
  /** Creates the keys if they are missing. */
  ensureKeys(): void;
  /** Call at the start of a transaction: another process may have created the keys since the last one. */
  begin(): void;
  /** Call after a rollback, which may have undone the keys. */
  forget(): void;
}

/** Writes with `get`, which returns nothing here, since the result object of `run` would be a third of a row's cost. */
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

  /** Checks again, since another process may have created them while this one waited for the lock. */
  const createKeys = (): void => {
    if (areMissing()) db.exec(createKeysOf(collection));
  };

  const ensureKeys = (): NonNullable<typeof keyed> => {
    if (keyed !== undefined) return keyed;
    if (areMissing())
      if (db.isTransaction) createKeys();
      else inTransaction(db, createKeys);
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
      else ensureKeys().upserting.get(...row);
    },
    remove: (tenant, key) => void ensureKeys().removing.get(tenant, key),
    ensureKeys: () => void ensureKeys(),
    begin: () => {
      if (heap !== undefined && !areMissing()) heap = undefined;
    },
    forget: () => {
      heap = undefined;
      keyed = undefined;
    },
  };
};
