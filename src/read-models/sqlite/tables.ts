import { fieldsOfIndex, type Collection, type Query, type Value } from '../../../projections/projector';
import { PARKED } from '../read-models';

/**
 * How a generation's collections map to tables: one per collection, with a column per indexed field besides the
 * document as JSON. Tenants are small numbers (see the table `tenants`), which halves the size of every index. Names
 * come from code, never from input, but are checked all the same, because they become SQL.
 */
const name = (text: string): string => {
  if (!/^[a-z][a-z_]*$/.test(text))
    throw new Error(`${text} cannot be the name of a collection, field or index.`);
  return text;
};

export const tableOf = (collection: string): string => `docs_${name(collection)}`;

export const fieldsOf = (collection: Collection): readonly string[] =>
  [...new Set(Object.values(collection.indexes).flat())].map(name);

const columnOf = (field: string): string => `field_${field}`;

const columnsOf = (collection: Collection, index: string): readonly string[] =>
  fieldsOfIndex(collection, index).map(columnOf);

/** The condition of a partial index, so that rows outside it cost nothing. */
const isIn = (collection: Collection, index: string): string =>
  `${columnsOf(collection, index)[0]} IS NOT NULL`;

/** Without indexes, rows are stored in key order (WITHOUT ROWID): one B-tree instead of two. */
const isStoredByKey = (collection: Collection): boolean => fieldsOf(collection).length === 0;

const columnsIn = (collection: Collection): string => {
  const columns = fieldsOf(collection).map((field) => `, ${columnOf(field)} ANY`);
  return `tenant INTEGER NOT NULL, key TEXT NOT NULL, document TEXT NOT NULL${columns.join('')}`;
};

/** With its keys. Its indexes come once it is whole: creating them at once costs a fraction. */
export const createTable = (collection: Collection): string => {
  const table = tableOf(collection.name);
  return isStoredByKey(collection)
    ? `CREATE TABLE ${table} (${columnsIn(collection)}, PRIMARY KEY (tenant, key)) STRICT, WITHOUT ROWID;`
    : `CREATE TABLE ${table} (${columnsIn(collection)}) STRICT;
       CREATE UNIQUE INDEX ${table}_key ON ${table} (tenant, key);`;
};

const indexOf = (collection: Collection, index: string): string => `${name(collection.name)}_${name(index)}`;

export const createIndexes = (collection: Collection): readonly string[] =>
  Object.keys(collection.indexes).map(
    (index) =>
      `CREATE INDEX IF NOT EXISTS ${indexOf(collection, index)} ON ${tableOf(collection.name)}
       (tenant, ${columnsOf(collection, index).join(', ')}) WHERE ${isIn(collection, index)};`,
  );

export const createTenants =
  'CREATE TABLE tenants (number INTEGER PRIMARY KEY, tenant TEXT NOT NULL UNIQUE) STRICT;';

/**
 * Few of many tenants are parked. Without CROSS JOIN, SQLite would scan all tenants in order, to avoid sorting.
 */
export const parkedIn = (comparison: '>' | '>='): string =>
  `SELECT t.tenant, d.key, d.document FROM ${tableOf(PARKED)} d CROSS JOIN tenants t ON t.number = d.tenant
   WHERE (t.tenant, d.key) ${comparison} (?, ?) ORDER BY t.tenant, d.key LIMIT ?`;

export const upsertInto = (collection: Collection): string => {
  const columns = ['document', ...fieldsOf(collection).map(columnOf)];
  const changes = columns.map((column) => `${column} = excluded.${column}`);
  return `INSERT INTO ${tableOf(collection.name)} VALUES (?, ?${', ?'.repeat(columns.length)})
    ON CONFLICT (tenant, key) DO UPDATE SET ${changes.join(', ')}`;
};

export const removeFrom = (collection: Collection): string =>
  `DELETE FROM ${tableOf(collection.name)} WHERE tenant = ? AND key = ?`;

/** A selection as SQL: conditions after `WHERE tenant = ?`, their values, and the columns to order by. */
const selected = (collection: Collection, { index, equal = [], from, upTo }: Query) => {
  const columns = [...(index === undefined ? [] : columnsOf(collection, index)), 'key'];
  const next = columns[equal.length];
  if (next === undefined) throw new Error(`There are more values than fields in the index ${index}.`);
  const tests: [string, Value | undefined][] = [
    ...equal.map((value, i): [string, Value] => [`${columns[i]} = ?`, value]),
    [`${next} >= ?`, from],
    [`${next} <= ?`, upTo],
  ];
  const used = tests.filter(([, value]) => value !== undefined);
  const isRange = from !== undefined || upTo !== undefined;
  // SQLite uses a partial index only if the query implies its condition.
  const inIndex = index === undefined ? '' : ` AND ${isIn(collection, index)}`;
  return {
    tests: `${used.map(([test]) => ` AND ${test}`).join('')}${inIndex}`,
    values: used.map(([, value]) => value as Value),
    order: isRange ? [next] : columns.slice(equal.length),
  };
};

/** Forces the named index, since without statistics SQLite may prefer another one. */
const tableBy = (collection: Collection, index: string | undefined): string =>
  `${tableOf(collection.name)}${index === undefined ? '' : ` INDEXED BY ${indexOf(collection, index)}`}`;

/** A query as SQL, with the values after the tenant's number. */
export const findIn = (collection: Collection, query: Query) => {
  const { tests, values, order } = selected(collection, query);
  const direction = query.descending === true ? ' DESC' : '';
  const ordered = order.map((column) => `${column}${direction}`).join(', ');
  return {
    sql: `SELECT document FROM ${tableBy(collection, query.index)} WHERE tenant = ?${tests} ORDER BY ${ordered} LIMIT ?`,
    values: [...values, query.limit],
  };
};

/** A field of the document with certain values in all fields of an index, as SQL. */
export const fieldIn = (collection: Collection, index: string, field: string): string => {
  const tests = columnsOf(collection, index).map((column) => ` AND ${column} = ?`);
  return `SELECT document ->> '$.${name(field)}' AS value FROM ${tableBy(collection, index)} WHERE tenant = ?${tests.join('')}`;
};
