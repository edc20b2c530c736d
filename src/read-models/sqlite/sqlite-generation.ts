import { fstatSync, openSync, statSync } from 'node:fs';
import { inLaterTurn } from '../../async/turns';
import type { Collection } from '../../../projections/projector';
import { monotonicMs } from '../../async/clock';
import { codeOf, fault, messageOf } from '../../fault';
import { dataVersion, openForReading, sizeIfTooShort } from '../../sqlite/database';
import type { Generation, GenerationId, Reader } from '../read-models';
import { isDamage, lost } from '../damage';
import { guarded } from './damaged-file';
import { generationReader, type GenerationReader } from './generation-reader';
import type { Send } from './writer';
import { flattening } from './writes';

/** Reads directly, and writes through `send`. */
export interface SqliteGeneration extends Generation {
  /** When it was last used, on the monotonic clock. */
  idleSince(): number;
  /** Marks it if it has become damaged, as far as that is seen at a glance. */
  look(): void;
  /** Closes the file until the next use. */
  close(): void;
}

/** Above all tokens of one connection. */
const TOKEN_RANGE = 2 ** 32;

/** Turns errors of the driver into faults, but not our own bugs. */
export const orUnavailable = <T>(path: string, read: () => T): T => {
  try {
    return read();
  } catch (error) {
    if (codeOf(error) === undefined || isDamage(error)) throw error;
    throw fault('read_models_unavailable', `The read model ${path} cannot be read: ${messageOf(error)}`);
  }
};

/** A generation's file. */
export interface GenerationFile {
  readonly id: GenerationId;
  readonly path: string;
  /** Called when it is found to be damaged. */
  readonly mark: (id: GenerationId, why: string) => void;
}

/**
 * Opens a file once more and reads as little as possible: a connection that is open may not notice that it is damaged. A
 * file that is too short may be growing right now, so it counts as cut off if it has not grown since the last look.
 */
const lookingAt = ({ id, path, mark }: GenerationFile): (() => void) => {
  let shortBefore: number | undefined;
  let file: number | undefined;
  /** Stays open: with any close of the file, this process would lose the locks of its connections to it. */
  const opened = (): number => {
    if (file === undefined || fstatSync(file).ino !== statSync(path).ino) file = openSync(path, 'r');
    return file;
  };
  return () =>
    guarded(id, path, mark, () => {
      const db = openForReading(path);
      try {
        generationReader(db, []).control();
      } finally {
        db.close();
      }
      const short = sizeIfTooShort(opened());
      if (short !== undefined && short === shortBefore) throw lost('it is cut off.');
      shortBefore = short;
    });
};

/** The reading connection of a generation. Closed while idle, and reopened at the next use. */
const reopenable = ({ id, path, mark }: GenerationFile, collections: readonly Collection[]) => {
  const connect = () => {
    const db = openForReading(path);
    const reader = generationReader(db, collections);
    // SQLite opens its other files at the first query; once open, they may be removed.
    reader.control();
    // `data_version` only reports changes by other connections, and nothing is written through this one.
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
  const using = <T>(use: () => T): T => orUnavailable(path, () => guarded(id, path, mark, use));
  return {
    read: <T>(read: (reader: GenerationReader) => T): T => using(() => read(current().reader)),
    /** Changes after reopening too, since the file may have changed in between. */
    changeToken: (): number =>
      using(() => {
        const version = current().version();
        return openings * TOKEN_RANGE + version;
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
  countsBefore: async (tenantId, collection, parts, values) => {
    const counts: number[][] = parts.map(() => []);
    for (const [at, part] of parts.entries())
      for (const value of values) {
        await new Promise<void>((resolve) => inLaterTurn(resolve));
        counts[at]?.push(read((db) => db.countBefore(tenantId, collection, part, value)));
      }
    return counts;
  },
  lineEnds: async (tenantId, collection, line, limit) =>
    read((db) => db.lineEnds(tenantId, collection, line, limit)),
  scan: async (collection, limit, after) => read((db) => db.scan(collection, limit, after)),
  applied: async () => read((db) => db.control().applied),
  changeToken,
});

export const sqliteGeneration = (
  at: GenerationFile,
  collections: readonly Collection[],
  maxCommitBytes: number,
  send: Send,
): SqliteGeneration => {
  const { id } = at;
  const file = reopenable(at, collections);
  const { read } = file;
  read(() => undefined);
  const reader = readerOf(file);
  const flatten = flattening(collections, maxCommitBytes);

  return {
    id,
    maxCommitBytes,
    reader,
    control: async () => read((db) => db.control()),
    scan: reader.scan,
    // On the writing connection, since a commit invalidates the page cache of all others.
    load: (keys) => send('load', id, keys),
    commit: async (n, to, writes) => {
      const isDone = await send('commit', id, n, to, flatten(writes));
      file.touch();
      return isDone;
    },
    snapshot: async (keys) =>
      read(({ db, control, load }) => {
        db.exec('BEGIN');
        try {
          return { control: control(), documents: load(keys) };
        } finally {
          db.exec('COMMIT');
        }
      }),
    scanTexts: async (collection, limit, after) => read((db) => db.scanTexts(collection, limit, after)),
    idleSince: file.idleSince,
    look: lookingAt(at),
    close: file.close,
  };
};
