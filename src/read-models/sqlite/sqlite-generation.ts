import type { Collection } from '../../../projections/projector';
import { monotonicMs } from '../../clock';
import { codeOf, fault, messageOf } from '../../fault';
import { dataVersion, openForReading } from '../../sqlite/database';
import type { Checkpoint, DocumentKey, Generation, GenerationId, Reader, Write } from '../read-models';
import { generationReader } from './generation-reader';
import { rangeDifferences, type Connection } from './range-differences';
import type { WriteRequest } from './writer';
import { flatten } from './writes';

/** Sends to the writing side of a generation, wherever that runs. */
export type Send = <T>(request: WriteRequest) => Promise<T>;

/** A generation as this process reads it. What it writes goes through `send`. */
export interface SqliteGeneration extends Generation {
  readonly [PATH]: string;
  /** Commits, and says of each document whether it is certainly new. */
  commitAs(
    n: number,
    to: Checkpoint | undefined,
    writes: readonly Write[],
    isNew: (key: DocumentKey) => boolean,
  ): Promise<boolean>;
  /** Since when nobody has used it, on the monotonic clock. */
  idleSince(): number;
  /** Closes the file until the next use. */
  close(): void;
}

/** Where a generation is kept. */
const PATH = Symbol('path');

/** 64 MB are a fraction of the memory of a thread that projects. */
export const MOST_COMMIT_BYTES = 67_108_864;

/** The tokens of one connection are smaller than this. */
const TOKENS = 2 ** 32;

const never = (): boolean => false;

/** What the driver throws becomes a fault that callers know; a mistake of ours stays one. */
export const orUnavailable = <T>(path: string, read: () => T): T => {
  try {
    return read();
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    throw fault('read_models_unavailable', `The read model ${path} cannot be read: ${messageOf(error)}`);
  }
};

const connectionTo = (path: string, collections: readonly Collection[]) => {
  const db = openForReading(path);
  const reader = generationReader(db, collections);
  // SQLite opens the rest of its files at the first question: from then on they may be removed under it.
  reader.control();
  // Nothing is written through this connection, so it sees every change as another's.
  return { db, reader, version: dataVersion(db) };
};

export const sqliteGeneration = (
  path: string,
  id: GenerationId,
  collections: readonly Collection[],
  mostCommitBytes: number,
  send: Send,
): SqliteGeneration => {
  let open: ReturnType<typeof connectionTo> | undefined;
  let openings = 0;
  let usedAt = monotonicMs();

  const connect = () => {
    usedAt = monotonicMs();
    if (open === undefined) openings += 1;
    return (open ??= connectionTo(path, collections));
  };
  const readNow = <T>(read: (connection: ReturnType<typeof connectionTo>) => T): T =>
    orUnavailable(path, () => read(connect()));
  const reading = async <T>(read: (connection: Connection) => T): Promise<T> => readNow(read);
  readNow(() => undefined);

  const commitAs: SqliteGeneration['commitAs'] = async (n, to, writes, isNew) => {
    const request = {
      do: 'commit',
      id,
      n,
      to,
      writes: flatten(writes, collections, mostCommitBytes, isNew),
    } as const;
    const isDone = await send<boolean>(request);
    usedAt = monotonicMs();
    return isDone;
  };

  const reader: Reader = {
    get: (tenantId, collection, key) => reading((db) => db.reader.get(tenantId, collection, key)),
    find: (tenantId, collection, query) => reading((db) => db.reader.find(tenantId, collection, query)),
    countBefore: (tenantId, collection, part, value) =>
      reading((db) => db.reader.countBefore(tenantId, collection, part, value)),
    scan: (collection, limit, after = { tenantId: '' }) =>
      reading((db) => db.reader.scan(collection, limit, after)),
    applied: () => reading((db) => db.reader.control().applied),
    changeToken: () => readNow((db) => openings * TOKENS + db.version()),
  };

  return {
    id,
    [PATH]: path,
    mostCommitBytes,
    reader,
    control: () => reading((db) => db.reader.control()),
    scan: reader.scan,
    load: (keys) => reading((db) => db.reader.load(keys)),
    commit: (n, to, writes) => commitAs(n, to, writes, never),
    commitAs,
    snapshot: (keys) =>
      reading(({ db, reader: from }) => {
        db.exec('BEGIN');
        try {
          return { control: from.control(), documents: from.load(keys) };
        } finally {
          db.exec('COMMIT');
        }
      }),
    ownDifferences: (rebuilt, collection) => {
      const other = (rebuilt as Partial<SqliteGeneration>)[PATH];
      return other === undefined ? undefined : rangeDifferences(() => readNow((db) => db), other, collection);
    },
    idleSince: () => usedAt,
    close: () => {
      open?.db.close();
      open = undefined;
    },
  };
};
