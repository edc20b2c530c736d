import type { Collection, Document, Query, Selection } from '../../../projections/projector';
import { codeOf, fault, messageOf } from '../../fault';
import { dataVersion, openForReading } from '../../sqlite/database';
import type { Control, DocumentKey, Generation, GenerationId, Scanned, Write } from '../read-models';
import type { RowWrite } from './generation-writer';
import { countIn, fieldsOf, findIn, tableOf } from './tables';
import type { WriteRequest } from './writer';

type Field = string | number | null;

const MOST_NUMBERS = 100_000;

const isPlain = (key: string): boolean => key.isWellFormed() && !key.includes('\0');

const rowOf = (write: Write, fields: readonly string[]): RowWrite => ({
  tenantId: write.tenantId,
  collection: write.collection,
  key: write.key,
  document: write.document === undefined ? undefined : JSON.stringify(write.document),
  fields:
    write.document === undefined ? [] : fields.map((field) => (write.document?.[field] ?? null) as Field),
});

const parsed = (row: unknown): Document => JSON.parse((row as { document: string }).document) as Document;

/** A generation as this process reads it; what it writes goes through `send`. */
export const sqliteGeneration = (
  path: string,
  id: GenerationId,
  collections: readonly Collection[],
  send: <T>(request: WriteRequest) => Promise<T>,
): Generation & { close(): void } => {
  const db = openForReading(path);
  const declared = new Map(collections.map((collection) => [collection.name, collection]));
  const statements = new Map<string, ReturnType<typeof db.prepare>>();

  const prepared = (sql: string): ReturnType<typeof db.prepare> => {
    const statement = statements.get(sql) ?? db.prepare(sql);
    statements.set(sql, statement);
    return statement;
  };

  const collectionOf = (name: string): Collection => {
    const collection = declared.get(name);
    if (collection === undefined) throw new Error(`There is no collection ${name} in ${path}.`);
    return collection;
  };

  /** Numbers are never changed, so those that were seen are remembered; a tenant without one has no documents yet. */
  const numbers = new Map<string, number>();
  const numberOf = (tenantId: string): number | undefined => {
    const known = numbers.get(tenantId);
    if (known !== undefined) return known;
    const row = prepared('SELECT number FROM tenants WHERE tenant = ?').get(tenantId) as
      { number: number } | undefined;
    if (row === undefined) return undefined;
    if (numbers.size >= MOST_NUMBERS) numbers.clear();
    numbers.set(tenantId, row.number);
    return row.number;
  };

  const getOne = (tenant: number, collection: string, key: string): Document | undefined => {
    const sql = `SELECT document FROM ${tableOf(collectionOf(collection).name)} WHERE tenant = ? AND key = ?`;
    const row = prepared(sql).get(tenant, key);
    return row === undefined ? undefined : parsed(row);
  };

  const get = (tenantId: string, collection: string, key: string): Document | undefined => {
    const { name } = collectionOf(collection);
    const tenant = numberOf(tenantId);
    return tenant === undefined ? undefined : getOne(tenant, name, key);
  };

  /**
   * Many documents of one tenant and collection are asked for in one go: most of the cost of one is the call. The keys
   * go as JSON, in which not every text comes out as it went in.
   */
  const getMany = (tenant: number, collection: string, keys: readonly string[]): Map<string, Document> => {
    if (!keys.every(isPlain)) {
      const found = keys.map((key) => [key, getOne(tenant, collection, key)] as const);
      return new Map(found.filter((pair): pair is [string, Document] => pair[1] !== undefined));
    }
    const table = tableOf(collectionOf(collection).name);
    const sql = `SELECT key, document FROM ${table}
      WHERE tenant = ? AND key IN (SELECT value FROM json_each(?))`;
    const rows = prepared(sql).all(tenant, JSON.stringify(keys)) as { key: string }[];
    return new Map(rows.map((row) => [row.key, parsed(row)]));
  };

  const load = (keys: readonly DocumentKey[]): readonly (Document | undefined)[] => {
    const groups = new Map<string, number[]>();
    keys.forEach(({ tenantId, collection }, at) => {
      const name = `${tenantId} ${collection}`;
      const group = groups.get(name);
      if (group === undefined) groups.set(name, [at]);
      else group.push(at);
    });
    const found: (Document | undefined)[] = Array.from({ length: keys.length });
    for (const group of groups.values()) {
      const { tenantId, collection } = keys[group[0] as number] as DocumentKey;
      collectionOf(collection);
      const tenant = numberOf(tenantId);
      if (tenant === undefined) continue;
      const documents = getMany(
        tenant,
        collection,
        group.map((at) => (keys[at] as DocumentKey).key),
      );
      for (const at of group) found[at] = documents.get((keys[at] as DocumentKey).key);
    }
    return found;
  };

  const find = (tenantId: string, name: string, query: Query): readonly Document[] => {
    const { sql, values } = findIn(collectionOf(name), query);
    const tenant = numberOf(tenantId);
    return tenant === undefined
      ? []
      : prepared(sql)
          .all(tenant, ...values)
          .map(parsed);
  };

  const count = (tenantId: string, name: string, selection: Selection): number => {
    const { sql, values } = countIn(collectionOf(name), selection);
    const tenant = numberOf(tenantId);
    return tenant === undefined ? 0 : (prepared(sql).get(tenant, ...values) as { n: number }).n;
  };

  const nextTenant = (after: string): string | undefined => {
    const sql = 'SELECT tenant FROM tenants WHERE tenant > ? ORDER BY tenant LIMIT 1';
    return (prepared(sql).get(after) as { tenant: string } | undefined)?.tenant;
  };

  /** Tenant after tenant in the order of their ids, each from its own stretch of the index. */
  const scan = (
    collection: string,
    limit: number,
    after: { tenantId: string; key?: string },
  ): readonly Scanned[] => {
    const table = tableOf(collectionOf(collection).name);
    const rowsOf = (tenant: number, most: number, from: string | undefined) => {
      const sql = `SELECT key, document FROM ${table}
        WHERE tenant = ? AND key ${from === undefined ? '>=' : '>'} ? ORDER BY key LIMIT ?`;
      return prepared(sql).all(tenant, from ?? '', most) as { key: string }[];
    };
    const found: Scanned[] = [];
    let { key } = after;
    let tenantId: string | undefined = after.tenantId === '' ? nextTenant('') : after.tenantId;
    while (tenantId !== undefined && found.length < limit) {
      const owner: string = tenantId;
      const rows = rowsOf(numberOf(owner) ?? -1, limit - found.length, key);
      found.push(...rows.map((row) => ({ tenantId: owner, key: row.key, document: parsed(row) })));
      tenantId = nextTenant(owner);
      key = undefined;
    }
    return found;
  };

  const control = (): Control => {
    const row = prepared('SELECT n, position, event_id, log FROM control').get() as {
      n: number;
      position: string | null;
      event_id: string | null;
      log: string;
    };
    if (row.position === null || row.event_id === null) return { n: row.n, log: row.log };
    const to = { position: row.position, eventId: row.event_id };
    return { n: row.n, log: row.log, to, applied: to.position };
  };

  /** What the driver throws becomes a fault that callers know; a mistake of ours stays one. */
  const readNow = <T>(read: () => T): T => {
    try {
      return read();
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      throw fault('read_models_unavailable', `The read model ${path} cannot be read: ${messageOf(error)}`);
    }
  };
  const reading = async <T>(read: () => T): Promise<T> => readNow(read);
  // Nothing is written through this connection, so it sees every change as another's.
  const version = dataVersion(db);

  const fields = new Map(collections.map((collection) => [collection.name, fieldsOf(collection)]));

  return {
    id,
    version: () => readNow(version),
    get: (tenantId, collection, key) => reading(() => get(tenantId, collection, key)),
    find: (tenantId, collection, query) => reading(() => find(tenantId, collection, query)),
    count: (tenantId, collection, selection) => reading(() => count(tenantId, collection, selection)),
    load: (keys) => reading(() => load(keys)),
    control: () => reading(control),
    commit: (n, to, writes) =>
      send<boolean>({
        do: 'commit',
        id,
        n,
        to,
        writes: writes.map((write) => rowOf(write, fields.get(write.collection) ?? [])),
      }),
    scan: (collection, limit, after = { tenantId: '' }) => reading(() => scan(collection, limit, after)),
    snapshot: (keys) =>
      reading(() => {
        db.exec('BEGIN');
        try {
          return { control: control(), documents: load(keys) };
        } finally {
          db.exec('COMMIT');
        }
      }),
    finish: () => send<void>({ do: 'finish', id }),
    close: () => db.close(),
  };
};
