import {
  PROGRESS,
  PROGRESS_KEY,
  fieldsOfIndex,
  numberingOf,
  type Collection,
  type Document,
  type Line,
  type Query,
  type Value,
} from '../../../projections/projector';
import { messageOf } from '../../fault';
import type { Database } from '../../sqlite/database';
import type { Head } from '../../event-log/event-log';
import { inOrderOf, type Control, type ParkedTenant, type Progress, type ReadModelSet } from '../read-models';

const MAX_NUMBERS = 100_000;

/** The control state, and the last event of whichever tenant that was ever committed. */
export interface StoredControl extends Control {
  readonly furthest?: Head;
}

/** The same, but synchronous. */
type InThisThread<F extends (...args: never) => Promise<unknown>> = (
  ...args: Parameters<F>
) => Awaited<ReturnType<F>>;

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw Object.assign(new Error(`malformed document: ${messageOf(error)}`), { code: 'EDOCUMENT' });
  }
};

/** A connection to a set's file, with its caches. */
const connectionTo = (db: Database, collections: ReadonlyMap<string, Collection>) => {
  const statements = new Map<string, ReturnType<Database['prepare']>>();
  /** Cached, because committed numbers never change. */
  const numbers = new Map<string, number>();
  /** By a short name, since a long text that was just put together is slow to look up. */
  const preparedOnce = (called: string, sqlOf: () => string) => {
    const statement = statements.get(called) ?? db.prepare(sqlOf());
    statements.set(called, statement);
    return statement;
  };
  const prepared = (sql: string) => preparedOnce(sql, () => sql);
  return {
    db,
    prepared,
    preparedOnce,
    /** For a statement that names an index: until a build is finished, there is none. */
    preparedByIndex: (sql: string) => {
      try {
        return prepared(sql);
      } catch (error) {
        if (!messageOf(error).includes('no such index')) throw error;
        return prepared(withoutIndex(sql));
      }
    },
    collectionOf: (name: string): Collection => {
      const collection = collections.get(name);
      if (collection === undefined) throw new Error(`There is no collection ${name}.`);
      return collection;
    },
    /** The number of a tenant in this file. Undefined: the tenant has no documents yet. */
    numberOf: (tenantId: string): number | undefined => {
      const known = numbers.get(tenantId);
      if (known !== undefined) return known;
      const row = prepared('SELECT number FROM tenants WHERE tenant = ?').get(tenantId);
      if (row === undefined) return undefined;
      if (numbers.size >= MAX_NUMBERS) numbers.clear();
      numbers.set(tenantId, Number(row['number']));
      return Number(row['number']);
    },
    /** Drops the cached numbers: after a rollback they may be stale. */
    forget: () => numbers.clear(),
  };
};

type Connection = ReturnType<typeof connectionTo>;

const control = ({ prepared }: Connection): StoredControl => {
  const row = prepared('SELECT state FROM control').get();
  if (row === undefined) throw new Error('The control state is missing: the file is malformed.');
  return parsed(row['state'] as string) as StoredControl;
};

const get =
  ({ preparedOnce, collectionOf, numberOf }: Connection): InThisThread<ReadModelSet['get']> =>
  (tenantId, collection, key) => {
    const sqlOf = (): string =>
      `SELECT document FROM ${tableOf(collectionOf(collection).name)} WHERE tenant = ? AND key = ?`;
    const row = preparedOnce(`get ${collection}`, sqlOf).get(numberOf(tenantId) ?? null, storedText(key));
    return row === undefined ? undefined : (parsed(row['document'] as string) as Document);
  };

/**
 * Fetches many documents of a collection as one text, since most of a document's cost is crossing into JavaScript. They
 * are identified by tenant number, a space and the key.
 */
const load = (connection: Connection): InThisThread<ReadModelSet['load']> => {
  const { preparedOnce, collectionOf, numberOf } = connection;
  const getOne = get(connection);
  return (keys) => {
    const [only] = keys;
    if (only !== undefined && keys.length === 1) return [getOne(only.tenantId, only.collection, only.key)];
    const found: (Document | undefined)[] = Array.from({ length: keys.length });
    for (const collection of new Set(keys.map((key) => key.collection))) {
      const group = [...keys.entries()].filter(([, key]) => key.collection === collection);
      const sqlOf =
        (): string => `SELECT concat('[', group_concat(concat('[', j.key, ',', d.document, ']')), ']') AS found
        FROM json_each(?) j CROSS JOIN ${tableOf(collectionOf(collection).name)} d
          ON d.tenant = CAST(j.value AS INTEGER) AND d.key = substr(j.value, instr(j.value, ' ') + 1)`;
      const ids = group.map(([, { tenantId, key }]) => `${numberOf(tenantId) ?? -1} ${storedText(key)}`);
      const row = preparedOnce(`load ${collection}`, sqlOf).get(JSON.stringify(ids)) as { found: string };
      for (const [i, document] of parsed(row.found) as [number, Document][])
        found[group[i]?.[0] ?? 0] = document;
    }
    return found;
  };
};

const progress =
  (connection: Connection): InThisThread<ReadModelSet['progress']> =>
  (tenantIds) =>
    load(connection)(
      tenantIds.map((tenantId) => ({ tenantId, collection: PROGRESS.name, key: PROGRESS_KEY })),
    ) as unknown as readonly (Progress | undefined)[];

const parked =
  ({ prepared }: Connection): InThisThread<ReadModelSet['parked']> =>
  (limit, afterTenant = '') => {
    const sql = `SELECT d.document ->> '$.parked' AS parked FROM ${PROGRESS_TABLE} d INDEXED BY ${PARKED_INDEX}
      CROSS JOIN tenants t ON t.number = d.tenant WHERE ${IS_PARKED} AND t.tenant > ? ORDER BY t.tenant LIMIT ?`;
    return prepared(sql)
      .all(afterTenant, limit)
      .map((row) => parsed(row['parked'] as string) as ParkedTenant);
  };

/** One lookup for each. */
const lastOf =
  ({ preparedOnce, collectionOf, numberOf }: Connection): InThisThread<ReadModelSet['lastOf']> =>
  (lines) =>
    lines.map((line) => {
      const { tenantId, collection, index, equal } = line;
      const called = `last ${collection} ${index} ${equal.length}`;
      const statement = preparedOnce(called, () => lastIn(collectionOf(collection), line));
      const row = statement.get(numberOf(tenantId) ?? null, ...equal.map(storedField));
      return { number: Number(row?.['number'] ?? 0), value: row?.['value'] as Value | undefined };
    });

/** As one text, for the same reason. */
const find =
  ({ preparedByIndex, collectionOf, numberOf }: Connection): InThisThread<ReadModelSet['find']> =>
  (tenantId, name, query) => {
    const { sql, values } = findIn(collectionOf(name), query);
    const row = preparedByIndex(sql).get(numberOf(tenantId) ?? null, ...values.map(storedField));
    return parsed((row as { found: string }).found) as Document[];
  };

/** As one text, too. */
const at =
  ({ db, preparedByIndex, collectionOf, numberOf }: Connection): InThisThread<ReadModelSet['at']> =>
  (tenantId, name, { index, equal }, numbers) => {
    const collection = collectionOf(name);
    const { number } = numberingOf(collection, { index, equal });
    const statement = preparedByIndex(atIn(collection, index));
    const values = [numberOf(tenantId) ?? null, ...equal.map(storedField), JSON.stringify(numbers)];
    const what = (): string => `${name} of tenant ${tenantId} in ${db.location()}`;
    const { found } = statement.get(...values) as { found: string };
    return inOrderOf(numbers, parsed(found) as Document[], number, what);
  };

/** First the rest of the tenant where it begins, then all later tenants. */
const scan =
  ({ prepared, collectionOf }: Connection): InThisThread<ReadModelSet['scan']> =>
  (collection, limit, { tenantId, key } = { tenantId: '' }) => {
    const from = `SELECT t.tenant, d.key, d.document FROM tenants t
      CROSS JOIN ${tableOf(collectionOf(collection).name)} d ON d.tenant = t.number WHERE t.tenant`;
    const inTenant = `${from} = ? AND d.key ${key === undefined ? '>=' : '>'} ? ORDER BY d.key LIMIT ?`;
    const rest = prepared(inTenant).all(tenantId, storedText(key ?? ''), limit);
    const inLater = `${from} > ? ORDER BY t.tenant, d.key LIMIT ?`;
    const later = rest.length < limit ? prepared(inLater).all(tenantId, limit - rest.length) : [];
    const rows = [...rest, ...later] as unknown as { tenant: string; key: string; document: string }[];
    return rows.map((row) => ({ tenantId: row.tenant, key: textOf(row.key), text: row.document }));
  };

/** The questions that a connection answers about the set of its file. */
export const setReader = (db: Database, collections: ReadonlyMap<string, Collection>) => {
  const connection = connectionTo(db, collections);
  return {
    ...connection,
    control: () => control(connection),
    get: get(connection),
    find: find(connection),
    at: at(connection),
    lastOf: lastOf(connection),
    load: load(connection),
    progress: progress(connection),
    parked: parked(connection),
    scan: scan(connection),
  };
};

export type SetReader = ReturnType<typeof setReader>;

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

const tableOf = (collection: string): string => `docs_${name(collection)}`;

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

const PROGRESS_TABLE = tableOf(PROGRESS.name);
const PARKED_INDEX = `${PROGRESS_TABLE}_parked`;
const IS_PARKED = "document ->> '$.parked' IS NOT NULL";
const INDEX_PARKED = `CREATE INDEX ${PARKED_INDEX} ON ${PROGRESS_TABLE} (tenant) WHERE ${IS_PARKED};`;

const indexOf = (collection: Collection, index: string): string => `${name(collection.name)}_${name(index)}`;

const createIndex = (collection: Collection, index: string): string =>
  `CREATE INDEX IF NOT EXISTS ${indexOf(collection, index)} ON ${tableOf(collection.name)}
   (tenant, ${columnsOf(collection, index).join(', ')}) WHERE ${isIn(collection, index)};`;

/** The indexes of a collection that number lines, or the others. */
const indexesOf = (collection: Collection, isNumbered: boolean): readonly string[] =>
  Object.keys(collection.indexes)
    .filter((index) => Object.hasOwn(collection.numbered ?? {}, index) === isNumbered)
    .map((index) => createIndex(collection, index));

/** Creating the other indexes once a set is whole costs a fraction. */
export const createIndexes = (collection: Collection): readonly string[] => indexesOf(collection, false);

/** Everything that a build needs: the ends of its lines are found by the indexes that number them. */
export const createTables = (collections: readonly Collection[]): string =>
  [
    CONTROL,
    TENANTS,
    ...collections.map(createTable),
    ...collections.flatMap((collection) => indexesOf(collection, true)),
    INDEX_PARKED,
  ].join('\n');

/** The statements that write the rows of a collection, and the fields after tenant, key and document. */
export const writesTo = (collection: Collection) => {
  const table = tableOf(collection.name);
  const fields = fieldsOf(collection);
  const columns = ['document', ...fields.map(columnOf)];
  const changes = columns.map((column) => `${column} = excluded.${column}`);
  const insert = `INSERT INTO ${table} VALUES (?, ?${', ?'.repeat(columns.length)})`;
  return {
    fields,
    insert,
    upsert: `${insert} ON CONFLICT (tenant, key) DO UPDATE SET ${changes.join(', ')}`,
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
const withoutIndex = (sql: string): string => sql.replace(/ INDEXED BY \w+/, '');

const DOCUMENTS = "concat('[', group_concat(document), ']') AS found";

/** A query as SQL, with the values after the tenant's number. */
const findIn = (collection: Collection, query: Query) => {
  const { tests, values, order } = selected(collection, query);
  const direction = query.descending === true ? ' DESC' : '';
  const ordered = order.map((column) => `${column}${direction}`).join(', ');
  return {
    sql: `SELECT ${DOCUMENTS} FROM (SELECT document
      FROM ${tableBy(collection, query.index)} WHERE tenant = ?${tests} ORDER BY ${ordered} LIMIT ?)`,
    values: [...values, query.limit],
  };
};

/** The documents of a line with some numbers, as SQL. */
const atIn = (collection: Collection, index: string): string => {
  const tests = columnsOf(collection, index).map((column) => ` AND ${column} `);
  return `SELECT ${DOCUMENTS} FROM ${tableBy(collection, index)} WHERE tenant = ?${tests.join('= ?')}IN (SELECT value FROM json_each(?)) AND ${isIn(collection, index)}`;
};

/** The end of a line, as SQL. */
const lastIn = (collection: Collection, line: Line): string => {
  const { number, monotonicField } = numberingOf(collection, line);
  const columns = columnsOf(collection, line.index);
  const tests = columns.slice(0, line.equal.length).map((column) => ` AND ${column} = ?`);
  const value = fieldsOf(collection).includes(monotonicField)
    ? columnOf(monotonicField)
    : `document ->> '$.${name(monotonicField)}'`;
  return `SELECT ${columnOf(number)} AS number, ${value} AS value FROM ${tableBy(collection, line.index)}
    WHERE tenant = ?${tests.join('')} AND ${isIn(collection, line.index)} ORDER BY ${columnOf(number)} DESC LIMIT 1`;
};

/** The value of a column. */
export type Field = string | number | null;

/** The driver cuts text off at the first NUL, so it is escaped with U+0001, as is U+0001 itself. The order stays. */
export const storedText = (text: string): string =>
  text.includes('\0') || text.includes('\u0001')
    ? text.replaceAll('\u0001', '\u0001\u0002').replaceAll('\0', '\u0001\u0001')
    : text;

const textOf = (stored: string): string =>
  stored
    .split('\u0001\u0001')
    .map((part) => part.replaceAll('\u0001\u0002', '\u0001'))
    .join('\0');

export const storedField = (value: unknown): Field =>
  typeof value === 'string' ? storedText(value) : ((value ?? null) as Field);
