import { fieldsOfIndex, type Collection, type Query, type Value } from '../../../projections/projector';

/**
 * How a set's collections map to tables: one per collection, with a column per indexed field besides the document as
 * JSON. Tenants are small numbers (see the table `tenants`), which halves the size of every index. Names come from code,
 * never from input, but are checked all the same, because they become SQL.
 */
const name = (text: string): string => {
  if (!/^[a-z][a-z_]*$/.test(text))
    throw new Error(`${text} cannot be the name of a collection, field or index.`);
  return text;
};

export const tableOf = (collection: string): string => `docs_${name(collection)}`;

const fieldsOf = (collection: Collection): readonly string[] =>
  [...new Set(Object.values(collection.indexes).flat())].map(name);

const columnOf = (field: string): string => `field_${field}`;

const columnsOf = (collection: Collection, index: string): readonly string[] =>
  fieldsOfIndex(collection, index).map(columnOf);

/** The condition of a partial index, so that rows outside it cost nothing. */
const isIn = (collection: Collection, index: string): string =>
  `${columnsOf(collection, index)[0]} IS NOT NULL`;

const CONTROL =
  'CREATE TABLE control (only INTEGER PRIMARY KEY CHECK (only = 1), state TEXT NOT NULL) STRICT;';

const TENANTS = 'CREATE TABLE tenants (number INTEGER PRIMARY KEY, tenant TEXT NOT NULL UNIQUE) STRICT;';

/** Without indexes, rows are stored in the order of their keys (WITHOUT ROWID): one B-tree instead of two. */
const createTable = (collection: Collection): string => {
  const table = tableOf(collection.name);
  const fields = fieldsOf(collection).map((field) => `, ${columnOf(field)} ANY`);
  const columns = `tenant INTEGER NOT NULL, key TEXT NOT NULL, document TEXT NOT NULL${fields.join('')}`;
  return fields.length === 0
    ? `CREATE TABLE ${table} (${columns}, PRIMARY KEY (tenant, key)) STRICT, WITHOUT ROWID;`
    : `CREATE TABLE ${table} (${columns}) STRICT;
       CREATE UNIQUE INDEX ${table}_key ON ${table} (tenant, key);`;
};

/** Everything but the secondary indexes: creating those once a set is whole costs a fraction. */
export const createTables = (collections: readonly Collection[]): string =>
  [CONTROL, TENANTS, ...collections.map(createTable)].join('\n');

const indexOf = (collection: Collection, index: string): string => `${name(collection.name)}_${name(index)}`;

export const createIndexes = (collection: Collection): readonly string[] =>
  Object.keys(collection.indexes).map(
    (index) =>
      `CREATE INDEX IF NOT EXISTS ${indexOf(collection, index)} ON ${tableOf(collection.name)}
       (tenant, ${columnsOf(collection, index).join(', ')}) WHERE ${isIn(collection, index)};`,
  );

/** The statements that write the rows of a collection, and the fields after tenant, key and document. */
export const writesTo = (collection: Collection) => {
  const [table, fields] = [tableOf(collection.name), fieldsOf(collection)];
  const columns = ['document', ...fields.map(columnOf)];
  const changes = columns.map((column) => `${column} = excluded.${column}`);
  return {
    fields,
    upsert: `INSERT INTO ${table} VALUES (?, ?${', ?'.repeat(columns.length)})
      ON CONFLICT (tenant, key) DO UPDATE SET ${changes.join(', ')}`,
    remove: `DELETE FROM ${table} WHERE tenant = ? AND key = ?`,
  };
};

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

/** The same statement for a set whose indexes do not exist yet. */
export const withoutIndex = (sql: string): string => sql.replace(/ INDEXED BY \w+/, '');

/** A query as SQL, with the values after the tenant's number. */
export const findIn = (collection: Collection, query: Query) => {
  const { tests, values, order } = selected(collection, query);
  const direction = query.descending === true ? ' DESC' : '';
  const ordered = order.map((column) => `${column}${direction}`).join(', ');
  return {
    sql: `SELECT concat('[', group_concat(document), ']') AS found FROM (SELECT document
      FROM ${tableBy(collection, query.index)} WHERE tenant = ?${tests} ORDER BY ${ordered} LIMIT ?)`,
    values: [...values, query.limit],
  };
};

/** A field of the document with certain values in all fields of an index, as SQL. */
export const fieldIn = (collection: Collection, index: string, field: string): string => {
  const tests = columnsOf(collection, index).map((column) => ` AND ${column} = ?`);
  return `SELECT document ->> '$.${name(field)}' AS value FROM ${tableBy(collection, index)} WHERE tenant = ?${tests.join('')} AND ${isIn(collection, index)}`;
};

/** The value of a column. */
export type Field = string | number | null;

/** The driver cuts text off at the first NUL, so it is escaped with U+0001, as is U+0001 itself. The order stays. */
export const storedText = (text: string): string =>
  text.includes('\0') || text.includes('\u0001')
    ? text.replaceAll('\u0001', '\u0001\u0002').replaceAll('\0', '\u0001\u0001')
    : text;

export const textOf = (stored: string): string =>
  stored
    .split('\u0001\u0001')
    .map((part) => part.replaceAll('\u0001\u0002', '\u0001'))
    .join('\0');

export const storedField = (value: unknown): Field =>
  typeof value === 'string' ? storedText(value) : ((value ?? null) as Field);
