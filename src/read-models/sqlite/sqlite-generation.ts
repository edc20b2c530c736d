import type { Collection, Document, Query } from '../../../projections/projector';
import { codeOf, fault, messageOf } from '../../fault';
import { openForReading } from '../../sqlite/database';
import type { Control, Generation, GenerationId, Scanned, Write } from '../read-models';
import type { RowWrite } from './generation-writer';
import { columnsOf, fieldsOf, tableOf } from './tables';
import type { WriteRequest } from './writer';

type Field = string | number | null;

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

  const get = (tenantId: string, collection: string, key: string): Document | undefined => {
    const sql = `SELECT document FROM ${tableOf(collectionOf(collection).name)} WHERE tenant = ? AND key = ?`;
    const row = prepared(sql).get(tenantId, key);
    return row === undefined ? undefined : parsed(row);
  };

  const find = (tenantId: string, name: string, query: Query): readonly Document[] => {
    const collection = collectionOf(name);
    const columns = query.index === undefined ? [] : columnsOf(collection, query.index);
    const equal = query.equal ?? [];
    const tests = columns.slice(0, equal.length).map((column) => ` AND ${column} = ?`);
    const order = [...columns, 'key'].join(', ');
    const sql = `SELECT document FROM ${tableOf(name)} WHERE tenant = ?${tests.join('')} ORDER BY ${order} LIMIT ?`;
    return prepared(sql)
      .all(tenantId, ...equal, query.limit)
      .map(parsed);
  };

  /** What the driver throws becomes a fault that callers know; a mistake of ours stays one. */
  const reading = async <T>(read: () => T): Promise<T> => {
    try {
      return read();
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      throw fault('read_models_unavailable', `The read model ${path} cannot be read: ${messageOf(error)}`);
    }
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

  const scan = (
    collection: string,
    limit: number,
    after: { tenantId: string; key: string },
  ): readonly Scanned[] => {
    const sql = `SELECT tenant, key, document FROM ${tableOf(collectionOf(collection).name)}
      WHERE (tenant, key) > (?, ?) ORDER BY tenant, key LIMIT ?`;
    return prepared(sql)
      .all(after.tenantId, after.key, limit)
      .map((row: { tenant: string; key: string }) => ({
        tenantId: row.tenant,
        key: row.key,
        document: parsed(row),
      }));
  };

  const fields = new Map(collections.map((collection) => [collection.name, fieldsOf(collection)]));

  return {
    id,
    get: (tenantId, collection, key) => reading(() => get(tenantId, collection, key)),
    find: (tenantId, collection, query) => reading(() => find(tenantId, collection, query)),
    load: (keys) =>
      reading(() => keys.map(({ tenantId, collection, key }) => get(tenantId, collection, key))),
    control: () => reading(control),
    commit: (n, to, writes) =>
      send<boolean>({
        do: 'commit',
        id,
        n,
        to,
        writes: writes.map((write) => rowOf(write, fields.get(write.collection) ?? [])),
      }),
    scan: (collection, limit, after = { tenantId: '', key: '' }) =>
      reading(() => scan(collection, limit, after)),
    close: () => db.close(),
  };
};
