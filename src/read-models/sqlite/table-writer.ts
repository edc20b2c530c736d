import type { Collection } from '../../../projections/projector';
import type { Database } from '../../sqlite/database';
import type { Field } from '../stored-text';
import { fieldsOf, removeFrom, upsertInto } from './tables';

/** Writes the rows of one collection. */
export interface TableWriter {
  /** The number of values per row: tenant number, key, document and indexed fields. */
  readonly width: number;
  put(row: readonly Field[]): void;
  remove(tenant: number, key: string): void;
}

/** Writes with `get`, which returns nothing here, since the result object of `run` would be a third of a row's cost. */
export const tableWriter = (db: Database, collection: Collection): TableWriter => {
  const upserting = db.prepare(upsertInto(collection));
  const removing = db.prepare(removeFrom(collection));
  return {
    width: 3 + fieldsOf(collection).length,
    put: (row) => void upserting.get(...row),
    remove: (tenant, key) => void removing.get(tenant, key),
  };
};
