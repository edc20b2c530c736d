import { numberingOf, type Collection, type Document } from '../../../projections/projector';
import { messageOf } from '../../fault';
import { groupedBy } from '../../values';
import type { Database } from '../../sqlite/database';
import type { Control, ReadModelSet } from '../read-models';
import { fieldIn, findIn, storedField, storedText, tableOf, textOf, withoutIndex } from './tables';

const MAX_NUMBERS = 100_000;

/** The same, but synchronous. */
type InThisThread<F extends (...args: never) => Promise<unknown>> = (
  ...args: Parameters<F>
) => Awaited<ReturnType<F>>;

/** A connection to a set's file, with its caches. */
const connectionTo = (db: Database, collections: ReadonlyMap<string, Collection>) => {
  const statements = new Map<string, ReturnType<Database['prepare']>>();
  /** Cached, because committed numbers never change. */
  const numbers = new Map<string, number>();
  const prepared = (sql: string) => {
    const statement = statements.get(sql) ?? db.prepare(sql);
    statements.set(sql, statement);
    return statement;
  };
  return {
    db,
    prepared,
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

const control = ({ prepared }: Connection): Control => {
  const row = prepared('SELECT state FROM control').get();
  if (row === undefined) throw new Error('The control state is missing: the file is malformed.');
  return JSON.parse(row['state'] as string) as Control;
};

const get =
  ({ prepared, collectionOf, numberOf }: Connection): InThisThread<ReadModelSet['get']> =>
  (tenantId, collection, key) => {
    const sql = `SELECT document FROM ${tableOf(collectionOf(collection).name)} WHERE tenant = ? AND key = ?`;
    const row = prepared(sql).get(numberOf(tenantId) ?? null, storedText(key));
    return row === undefined ? undefined : (JSON.parse(row['document'] as string) as Document);
  };

/**
 * Fetches many documents of a collection as one text, since most of a document's cost is crossing into JavaScript. They
 * are identified by tenant number, a space and the key.
 */
const load =
  ({ prepared, collectionOf, numberOf }: Connection): InThisThread<ReadModelSet['load']> =>
  (keys) => {
    const wanted = groupedBy(keys.entries(), ([, { collection }]) => collection);
    const found: (Document | undefined)[] = Array.from({ length: keys.length });
    for (const [collection, group] of wanted) {
      const sql = `SELECT concat('[', group_concat(concat('[', j.key, ',', d.document, ']')), ']') AS found
        FROM json_each(?) j CROSS JOIN ${tableOf(collectionOf(collection).name)} d
          ON d.tenant = CAST(j.value AS INTEGER) AND d.key = substr(j.value, instr(j.value, ' ') + 1)`;
      const ids = group.map(([, { tenantId, key }]) => `${numberOf(tenantId) ?? -1} ${storedText(key)}`);
      const row = prepared(sql).get(JSON.stringify(ids)) as { found: string };
      for (const [i, document] of JSON.parse(row.found) as [number, Document][])
        found[group[i]?.[0] ?? 0] = document;
    }
    return found;
  };

/** As one text, for the same reason. */
const find =
  ({ preparedByIndex, collectionOf, numberOf }: Connection): InThisThread<ReadModelSet['find']> =>
  (tenantId, name, query) => {
    const { sql, values } = findIn(collectionOf(name), query);
    const row = preparedByIndex(sql).get(numberOf(tenantId) ?? null, ...values.map(storedField));
    return JSON.parse((row as { found: string }).found) as Document[];
  };

/** Binary searches by number. */
const countsBefore =
  (connection: Connection): InThisThread<ReadModelSet['countsBefore']> =>
  (tenantId, name, line, values) => {
    const collection = connection.collectionOf(name);
    const { number, monotonicField } = numberingOf(collection, line);
    const [last] = find(connection)(tenantId, name, { ...line, from: 1, descending: true, limit: 1 });
    const statement = connection.preparedByIndex(fieldIn(collection, line.index, monotonicField));
    const ofLine = [connection.numberOf(tenantId) ?? null, ...line.equal.map(storedField)];
    return values.map((value) => {
      let [low, high] = [0, Number(last?.[number] ?? 0)];
      while (low < high) {
        const middle = Math.ceil((low + high) / 2);
        const found = statement.get(...ofLine, middle)?.['value'];
        if ((found as typeof value) < value) low = middle;
        else high = middle - 1;
      }
      return low;
    });
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
    countsBefore: countsBefore(connection),
    load: load(connection),
    scan: scan(connection),
  };
};

export type SetReader = ReturnType<typeof setReader>;
