import { isAscii } from 'node:buffer';
import {
  numberingOf,
  type Collection,
  type Document,
  type Line,
  type Value,
} from '../../../projections/projector';
import type { Database } from '../../sqlite/database';
import { messageOf } from '../../fault';
import { lost } from '../damage';
import { PARKED, type Generation, type Reader, type ScannedText, type ScanStart } from '../read-models';
import { stored, storedText, textOf } from '../stored-text';
import { fieldIn, findIn, parkedIn, tableOf } from './tables';

const MAX_NUMBERS = 100_000;

/** The same, but synchronous. */
export type InThisThread<F extends (...args: never) => Promise<unknown>> = (
  ...args: Parameters<F>
) => Awaited<ReturnType<F>>;

/** A connection to a generation's file, with its caches. */
interface Connection {
  prepared(sql: string): ReturnType<Database['prepare']>;
  collectionOf(name: string): Collection;
  /** The number of a tenant in this file. Undefined: the tenant has no documents yet. */
  numberOf(tenantId: string): number | undefined;
  /** Drops the cached tenant numbers: after a rollback they may be stale. */
  forget(): void;
}

const connectionTo = (db: Database, collections: readonly Collection[]): Connection => {
  const declared = new Map(collections.map((collection) => [collection.name, collection]));
  const statements = new Map<string, ReturnType<Database['prepare']>>();
  /** Cached, because committed numbers never change. */
  const numbers = new Map<string, number>();
  const prepared: Connection['prepared'] = (sql) => {
    const statement = statements.get(sql) ?? db.prepare(sql);
    statements.set(sql, statement);
    return statement;
  };
  return {
    prepared,
    collectionOf: (name) => {
      const collection = declared.get(name);
      if (collection === undefined) throw new Error(`There is no collection ${name}.`);
      return collection;
    },
    numberOf: (tenantId) => {
      const known = numbers.get(tenantId);
      if (known !== undefined) return known;
      const row = prepared('SELECT number FROM tenants WHERE tenant = ?').get(tenantId) as
        { number: number } | undefined;
      if (row === undefined) return undefined;
      if (numbers.size >= MAX_NUMBERS) numbers.clear();
      numbers.set(tenantId, row.number);
      return row.number;
    },
    forget: () => numbers.clear(),
  };
};

const parsedJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw lost(`it holds a document that is not JSON (${messageOf(error)}).`);
  }
};

const parsed = (row: unknown): Document => parsedJson((row as { document: string }).document) as Document;

const get =
  ({ prepared, collectionOf, numberOf }: Connection): InThisThread<Reader['get']> =>
  (tenantId, collection, key) => {
    const sql = `SELECT document FROM ${tableOf(collectionOf(collection).name)} WHERE tenant = ? AND key = ?`;
    const tenant = numberOf(tenantId);
    const row = tenant === undefined ? undefined : prepared(sql).get(tenant, storedText(key));
    return row === undefined ? undefined : parsed(row);
  };

/** Decodes UTF-8, with a fast path for ASCII, the usual case. */
const textOfBytes = (bytes: Uint8Array): string => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return buffer.toString(isAscii(buffer) ? 'latin1' : 'utf8');
};

/**
 * Fetches many documents of a collection as one text, since most of a document's cost is crossing into JavaScript. They
 * are identified by tenant number, a space and the key.
 */
const getMany = (
  { prepared }: Connection,
  collection: string,
  keys: readonly string[],
): readonly (readonly [at: number, document: Document])[] => {
  const sql = `SELECT CAST(concat('[', group_concat(concat('[', j.key, ',', d.document, ']')), ']') AS BLOB) AS found
    FROM json_each(?) j CROSS JOIN ${tableOf(collection)} d
      ON d.tenant = CAST(j.value AS INTEGER) AND d.key = substr(j.value, instr(j.value, ' ') + 1)`;
  const row = prepared(sql).get(JSON.stringify(keys)) as { found: Uint8Array };
  return parsedJson(textOfBytes(row.found)) as readonly (readonly [number, Document])[];
};

/** The documents to load from one collection: their indexes in the result, and their keys. */
interface Wanted {
  readonly collection: string;
  readonly indexes: number[];
  readonly ids: string[];
}

const load =
  (connection: Connection): InThisThread<Generation['load']> =>
  (keys) => {
    const found: (Document | undefined)[] = Array.from({ length: keys.length });
    const wanted = new Map<string, Wanted>();
    const wantedIn = (collection: string): Wanted => {
      const known = wanted.get(collection);
      if (known !== undefined) return known;
      const created = { collection: connection.collectionOf(collection).name, indexes: [], ids: [] };
      wanted.set(collection, created);
      return created;
    };
    keys.forEach(({ tenantId, collection, key }, at) => {
      const { indexes, ids } = wantedIn(collection);
      const tenant = connection.numberOf(tenantId);
      if (tenant === undefined) return;
      indexes.push(at);
      ids.push(`${tenant} ${storedText(key)}`);
    });
    for (const { collection, indexes, ids } of wanted.values())
      for (const [i, document] of getMany(connection, collection, ids))
        found[indexes[i] as number] = document;
    return found;
  };

const find =
  ({ prepared, collectionOf, numberOf }: Connection): InThisThread<Reader['find']> =>
  (tenantId, name, query) => {
    const { sql, values } = findIn(collectionOf(name), query);
    const tenant = numberOf(tenantId);
    const rows = tenant === undefined ? [] : prepared(sql).all(tenant, ...values.map(stored));
    if (query.areAllThere === true && rows.length < query.limit)
      throw lost(`documents of ${name} of tenant ${tenantId} are missing.`);
    return rows.map(parsed);
  };

/** A binary search by number. */
const countBefore =
  (connection: Connection) =>
  (tenantId: string, name: string, line: Line, value: Value): number => {
    const collection = connection.collectionOf(name);
    const { number, monotonicField } = numberingOf(collection, line);
    const [last] = find(connection)(tenantId, name, { ...line, from: 1, descending: true, limit: 1 });
    const statement = connection.prepared(fieldIn(collection, line.index, monotonicField));
    const [tenant, equal] = [connection.numberOf(tenantId) ?? -1, line.equal.map(stored)];
    let [low, high] = [0, Number(last?.[number] ?? 0)];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      const row = statement.get(tenant, ...equal, middle) as { value: Value } | undefined;
      if (row === undefined) throw lost(`${name} ${middle} of tenant ${tenantId} is missing.`);
      if (row.value < value) low = middle;
      else high = middle - 1;
    }
    return low;
  };

interface Row {
  readonly key: string;
  readonly document: string;
}

const textFrom = (tenantId: string, { key, document }: Row): ScannedText => ({
  tenantId,
  key: textOf(key),
  text: document,
});

const scanParked = (
  { prepared }: Connection,
  limit: number,
  { tenantId, key }: ScanStart,
): readonly ScannedText[] => {
  const rows = prepared(parkedIn(key === undefined ? '>=' : '>')).all(
    tenantId,
    storedText(key ?? ''),
    limit,
  ) as unknown as (Row & { readonly tenant: string })[];
  return rows.map((row) => textFrom(row.tenant, row));
};

/** The rows of a tenant, from the first key or after a given one. */
const rowsOf = (
  { prepared, numberOf }: Connection,
  collection: string,
  { tenantId, key }: ScanStart,
  max: number,
): readonly ScannedText[] => {
  const sql = `SELECT key, document FROM ${tableOf(collection)}
    WHERE tenant = ? AND key ${key === undefined ? '>=' : '>'} ? ORDER BY key LIMIT ?`;
  const rows = prepared(sql).all(numberOf(tenantId) ?? -1, storedText(key ?? ''), max) as unknown as Row[];
  return rows.map((row) => textFrom(tenantId, row));
};

const nextTenant = ({ prepared }: Connection, after: string): string | undefined => {
  const sql = 'SELECT tenant FROM tenants WHERE tenant > ? ORDER BY tenant LIMIT 1';
  return (prepared(sql).get(after) as { tenant: string } | undefined)?.tenant;
};

/** Tenant by tenant, ordered by id. */
const scanTexts =
  (connection: Connection): InThisThread<Generation['scanTexts']> =>
  (collection, limit, after = { tenantId: '' }) => {
    connection.collectionOf(collection);
    if (collection === PARKED) return scanParked(connection, limit, after);
    const found: ScannedText[] = [];
    let { key } = after;
    let tenantId = after.tenantId === '' ? nextTenant(connection, '') : after.tenantId;
    while (tenantId !== undefined && found.length < limit) {
      const from = key === undefined ? { tenantId } : { tenantId, key };
      found.push(...rowsOf(connection, collection, from, limit - found.length));
      tenantId = nextTenant(connection, tenantId);
      key = undefined;
    }
    return found;
  };

const scan =
  (connection: Connection): InThisThread<Reader['scan']> =>
  (...scope) =>
    scanTexts(connection)(...scope).map(({ text, ...row }) => ({
      ...row,
      document: parsedJson(text) as Document,
    }));

const control =
  ({ prepared }: Connection): InThisThread<Generation['control']> =>
  () => {
    const row = prepared('SELECT n, position, event_id, log FROM control').get() as
      { n: number; position: string | null; event_id: string | null; log: string } | undefined;
    if (row === undefined) throw lost('its control state is missing.');
    if (row.position === null || row.event_id === null) return { n: row.n, log: row.log };
    const to = { position: row.position, eventId: row.event_id };
    return { n: row.n, log: row.log, to, applied: to.position };
  };

export const generationReader = (db: Database, collections: readonly Collection[]) => {
  const connection = connectionTo(db, collections);
  return {
    ...connection,
    db,
    get: get(connection),
    find: find(connection),
    countBefore: countBefore(connection),
    load: load(connection),
    scan: scan(connection),
    scanTexts: scanTexts(connection),
    control: control(connection),
  };
};

export type GenerationReader = ReturnType<typeof generationReader>;
