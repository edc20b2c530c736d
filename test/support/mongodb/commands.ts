import { BSON, type Document } from 'mongodb';
import { MAX_DOCUMENT_BYTES } from './collection';
import { failure } from './failure';
import { filterOf } from './filter';
import { aggregate, count, distinct, explain, find, numberOf, type Cursors } from './reading';
import type { Store, View } from './store';
import { MAX_MESSAGE_BYTES } from './wire';
import * as writing from './writing';

/** A command being executed: its name, its body, and what it works with. */
export interface Command {
  readonly name: string;
  readonly body: Document;
  readonly database: string;
  /** `<database>.<collection>`, for commands on a collection. */
  readonly namespace: string;
  readonly store: Store;
  readonly cursors: Cursors;
  readonly step: writing.Step;
  readonly done: writing.Retried;
}

interface Known {
  readonly kind: 'hello' | 'read' | 'write' | 'other';
  /** The fields that the command may have besides those of every command. */
  readonly fields: readonly string[];
  readonly run: (command: Command) => Document | Promise<Document>;
}

const viewOf = ({ body, store }: Command): View => {
  const level: unknown = (body['readConcern'] as Document | undefined)?.['level'] ?? 'local';
  if (level === 'majority' || level === 'linearizable') return store.committed();
  if (level === 'local' || level === 'available') return store;
  throw failure(2, `This server does not read with the concern ${String(level)}.`);
};

const named = ({ database, store }: Command): readonly (readonly [string, string])[] =>
  store
    .namespaces()
    .filter((namespace) => namespace.startsWith(`${database}.`))
    .map((namespace) => [namespace.slice(database.length + 1), namespace]);

const listCollections = (command: Command): Document => {
  const { body, database, cursors } = command;
  const holds = filterOf((body['filter'] ?? {}) as Document);
  const isShort = body['nameOnly'] === true;
  const all = named(command)
    .map(([name]) => ({
      name,
      type: 'collection',
      ...(isShort ? {} : { options: {}, info: { readOnly: false } }),
    }))
    .filter(holds);
  return cursors.open(`${database}.$cmd.listCollections`, all, batchSizeOf(body));
};

const batchSizeOf = (body: Document): number =>
  numberOf((body['cursor'] as Document | undefined)?.['batchSize'], -1);

const listIndexes = ({ body, namespace, store, cursors }: Command): Document => {
  const collection = store.collection(namespace);
  if (collection === undefined) throw failure(26, `ns does not exist: ${namespace}`);
  const specs = [...collection.indexes.values()].map(
    ({ spec: { name, key, unique, expireAfterSeconds } }) => ({
      v: 2,
      key,
      name,
      ...(unique && name !== '_id_' ? { unique } : {}),
      ...(expireAfterSeconds === undefined ? {} : { expireAfterSeconds }),
    }),
  );
  return cursors.open(namespace, specs, batchSizeOf(body));
};

const listDatabases = ({ store, body }: Command): Document => {
  const names = [...new Set(store.namespaces().map((namespace) => namespace.split('.')[0]!))];
  const holds = filterOf((body['filter'] ?? {}) as Document);
  return {
    databases: names.map((name) => ({ name, sizeOnDisk: 0, empty: false })).filter(holds),
    totalSize: 0,
    ok: 1,
  };
};

const create = ({ namespace, store }: Command): Document => {
  if (store.collection(namespace) !== undefined) throw failure(48, `Collection ${namespace} already exists.`);
  store.create(namespace);
  return { ok: 1 };
};

/** Since MongoDB 7.0, dropping a collection that does not exist is not an error. */
const drop = ({ namespace, store }: Command): Document => {
  const there = store.collection(namespace);
  store.drop(namespace);
  return there === undefined ? { ok: 1 } : { nIndexesWas: there.indexes.size, ns: namespace, ok: 1 };
};

const dropDatabase = (command: Command): Document => {
  for (const [, namespace] of named(command)) command.store.drop(namespace);
  return { dropped: command.database, ok: 1 };
};

const getMore = ({ body, cursors }: Command): Document =>
  cursors.next(body['getMore'], numberOf(body['batchSize']));

const read = (fields: readonly string[], run: Known['run']): Known => ({ kind: 'read', fields, run });
const write = (fields: readonly string[], run: Known['run']): Known => ({ kind: 'write', fields, run });
const other = (run: Known['run'], fields: readonly string[] = []): Known => ({ kind: 'other', fields, run });

const FIND = ['filter', 'sort', 'projection', 'hint', 'skip', 'limit', 'batchSize', 'singleBatch'];
const FIND_AND_MODIFY = ['query', 'sort', 'remove', 'update', 'new', 'fields', 'upsert', 'hint'];
const WRITES = ['ordered', 'bypassDocumentValidation', 'stmtIds'];

export const COMMANDS: Readonly<Record<string, Known>> = {
  ping: other(() => ({ ok: 1 })),
  endSessions: other(() => ({ ok: 1 })),
  find: read([...FIND, 'noCursorTimeout', 'allowDiskUse'], (c) =>
    find(viewOf(c), c.namespace, c.body, c.cursors),
  ),
  count: read(['query', 'limit', 'skip', 'hint'], (c) => count(viewOf(c), c.namespace, c.body)),
  distinct: read(['key', 'query'], (c) => distinct(viewOf(c), c.namespace, c.body)),
  aggregate: read(['pipeline', 'cursor', 'allowDiskUse', 'hint'], (c) =>
    aggregate(viewOf(c), c.namespace, c.body, c.cursors),
  ),
  explain: read(['verbosity'], (c) => explain(viewOf(c), c.database, c.body)),
  getMore: read(['collection', 'batchSize'], getMore),
  killCursors: other(({ body, cursors }) => cursors.kill(body['cursors'] as unknown[]), ['cursors']),
  listCollections: read(['filter', 'nameOnly', 'authorizedCollections', 'cursor'], listCollections),
  listIndexes: read(['cursor'], listIndexes),
  listDatabases: read(['filter', 'nameOnly', 'authorizedDatabases'], listDatabases),
  insert: write(['documents', ...WRITES], (c) => writing.insert(c, c.body)),
  update: write(['updates', ...WRITES], (c) => writing.update(c, c.body)),
  delete: write(['deletes', ...WRITES], (c) => writing.remove(c, c.body)),
  findAndModify: write(FIND_AND_MODIFY, (c) => writing.findAndModify(c, c.body)),
  createIndexes: write(['indexes', 'commitQuorum'], (c) => writing.createIndexes(c, c.body)),
  dropIndexes: write(['index'], (c) => writing.dropIndexes(c, c.body)),
  create: write([], create),
  drop: write([], drop),
  dropDatabase: write([], dropDatabase),
};

const EVERYWHERE = new Set([
  '$db',
  '$readPreference',
  '$clusterTime',
  'lsid',
  'txnNumber',
  'readConcern',
  'writeConcern',
  'maxTimeMS',
  'comment',
  'apiVersion',
]);

/** A misspelt field in a command is an error, as on a real server. */
export const checkFields = (name: string, body: Document): void => {
  const known = new Set(COMMANDS[name]?.fields);
  const strange = Object.keys(body).find(
    (field) => field !== name && !EVERYWHERE.has(field) && !known.has(field),
  );
  if (strange !== undefined) throw failure(40415, `BSON field '${name}.${strange}' is an unknown field.`);
};

/** What a server reports about itself. */
export interface Self {
  readonly address: string;
  readonly isStandalone: boolean;
  readonly isPrimary: boolean;
  readonly election: number;
  readonly wireVersion: number;
  readonly version: string;
}

export const hello = (self: Self, isLegacy: boolean): Document => {
  const electionId = new BSON.ObjectId(self.election.toString(16).padStart(24, '0'));
  const set = {
    setName: 'rs0',
    setVersion: 1,
    secondary: !self.isPrimary,
    hosts: [self.address],
    me: self.address,
    ...(self.isPrimary ? { primary: self.address, electionId } : {}),
  };
  return {
    [isLegacy ? 'ismaster' : 'isWritablePrimary']: self.isPrimary,
    helloOk: true,
    ...(self.isStandalone ? {} : set),
    maxBsonObjectSize: MAX_DOCUMENT_BYTES,
    maxMessageSizeBytes: MAX_MESSAGE_BYTES,
    maxWriteBatchSize: 100_000,
    localTime: new Date(),
    logicalSessionTimeoutMinutes: 30,
    connectionId: 1,
    minWireVersion: 0,
    maxWireVersion: self.wireVersion,
    readOnly: false,
    ok: 1,
  };
};

export const buildInfo = ({ version }: Self): Document => ({
  version,
  versionArray: [...version.split('.').map(Number), 0],
  maxBsonObjectSize: MAX_DOCUMENT_BYTES,
  ok: 1,
});
