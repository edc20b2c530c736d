import type { Collection } from '../../../projections/projector';
import { monotonicMs } from '../../clock';
import { codeOf, fault, messageOf } from '../../fault';
import { dataVersion, openForReading } from '../../sqlite/database';
import type { Checkpoint, DocumentKey, Generation, GenerationId, Reader, Write } from '../read-models';
import { generationReader, type GenerationReader } from './generation-reader';
import { rangeDifferences } from './range-differences';
import type { WriteRequest } from './writer';
import { flattening } from './writes';

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

/** The tokens of one connection stay below this. */
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

/** The reading connection of a generation. It is closed when nobody uses it, and opened again at the next use. */
const reopenable = (path: string, collections: readonly Collection[]) => {
  const connect = () => {
    const db = openForReading(path);
    const reader = generationReader(db, collections);
    // SQLite opens the rest of its files at the first question: from then on they may be removed under it.
    reader.control();
    // Nothing is written through this connection, so it sees every change as another's.
    return { reader, version: dataVersion(db) };
  };
  let open: ReturnType<typeof connect> | undefined;
  let openings = 0;
  let usedAt = monotonicMs();

  const current = () => {
    usedAt = monotonicMs();
    if (open === undefined) openings += 1;
    return (open ??= connect());
  };
  return {
    read: <T>(read: (reader: GenerationReader) => T): T => orUnavailable(path, () => read(current().reader)),
    /** Also another one after the file was opened again: nobody knows what has changed in between. */
    changeToken: (): number =>
      orUnavailable(path, () => {
        const version = current().version();
        return openings * TOKENS + version;
      }),
    touch: (): void => {
      usedAt = monotonicMs();
    },
    idleSince: (): number => usedAt,
    close: (): void => {
      open?.reader.db.close();
      open = undefined;
    },
  };
};

type Reopenable = ReturnType<typeof reopenable>;

const readerOf = ({ read, changeToken }: Reopenable): Reader => ({
  get: async (tenantId, collection, key) => read((db) => db.get(tenantId, collection, key)),
  find: async (tenantId, collection, query) => read((db) => db.find(tenantId, collection, query)),
  countBefore: async (tenantId, collection, part, value) =>
    read((db) => db.countBefore(tenantId, collection, part, value)),
  scan: async (collection, limit, after) => read((db) => db.scan(collection, limit, after)),
  applied: async () => read((db) => db.control().applied),
  changeToken,
});

export const sqliteGeneration = (
  path: string,
  id: GenerationId,
  collections: readonly Collection[],
  maxCommitBytes: number,
  send: Send,
): SqliteGeneration => {
  const file = reopenable(path, collections);
  const { read } = file;
  read(() => undefined);
  const reader = readerOf(file);
  const flatten = flattening(collections, maxCommitBytes);

  const commitAs: SqliteGeneration['commitAs'] = async (n, to, writes, isNew) => {
    const isDone = await send<boolean>({ do: 'commit', id, n, to, writes: flatten(writes, isNew) });
    file.touch();
    return isDone;
  };

  return {
    id,
    [PATH]: path,
    maxCommitBytes,
    reader,
    control: async () => read((db) => db.control()),
    scan: reader.scan,
    // By the connection that writes: the cache of any other one is out of date after every commit.
    load: (keys) => send({ do: 'load', id, keys }),
    commit: (n, to, writes) => commitAs(n, to, writes, never),
    commitAs,
    snapshot: async (keys) =>
      read(({ db, control, load }) => {
        db.exec('BEGIN');
        try {
          return { control: control(), documents: load(keys) };
        } finally {
          db.exec('COMMIT');
        }
      }),
    ownDifferences: (rebuilt, collection) => {
      const other = (rebuilt as Partial<SqliteGeneration>)[PATH];
      return other === undefined ? undefined : rangeDifferences(read, other, collection);
    },
    idleSince: file.idleSince,
    close: file.close,
  };
};
