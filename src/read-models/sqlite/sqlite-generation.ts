import { closeSync, fstatSync, openSync, statSync } from 'node:fs';
import type { Collection } from '../../../projections/projector';
import { yieldToEventLoop } from '../../async/clock';
import { codeOf, fault, messageOf } from '../../fault';
import { dataVersion, inReadTransaction, openForReading, sizeIfTooShort } from '../../sqlite/database';
import {
  generationRemoved,
  type Control,
  type Generation,
  type GenerationId,
  type Reader,
} from '../read-models';
import { isDamage } from '../damage';
import { guarded } from './damaged-file';
import { generationReader, type GenerationReader } from './generation-reader';
import type { Send } from './writer';
import { flattening } from './writes';

/** Reads directly, and writes through `send`. */
export interface SqliteGeneration extends Generation {
  /** Marks it if it has become damaged, as far as that is seen at a glance. */
  look(): void;
  close(): void;
  /** Closes it because it was removed: `control` and `applied` say so from then on, and its space is freed. */
  closeRemoved(): void;
}

/** Turns errors of the driver into faults, but not our own bugs. */
const orUnavailable = <T>(path: string, read: () => T): T => {
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
  /** Called when it seems to be cut off. */
  readonly onShort: (id: GenerationId) => void;
}

/** Keeps no statement, with which the driver would keep the file open. */
const readControl = (path: string): void => {
  const db = openForReading(path);
  try {
    db.exec('SELECT n, position FROM control');
  } finally {
    db.close();
  }
};

/**
 * Opens a file once more and reads as little as possible: a connection that is open may not notice that it is damaged. A
 * file that is too short may be growing right now, so it seems to be cut off if it has not grown since the last look.
 */
const lookingAt = ({ id, path, mark, onShort }: GenerationFile) => {
  let shortBefore: number | undefined;
  let file: number | undefined;
  /** Stays open: with any close of the file, this process would lose the locks of its connections to it. */
  const opened = (): number => {
    if (file === undefined || fstatSync(file).ino !== statSync(path).ino) file = openSync(path, 'r');
    return file;
  };
  return {
    look: (): void =>
      guarded(id, path, mark, () => {
        readControl(path);
        const short = sizeIfTooShort(opened());
        if (short !== undefined && short === shortBefore) onShort(id);
        shortBefore = short;
      }),
    /** Of a removed file nobody needs the locks. */
    closeRemoved: (): void => {
      if (file !== undefined) closeSync(file);
      file = undefined;
    },
  };
};

/** The reading connection of a generation. */
const connectionTo = ({ id, path, mark }: GenerationFile, collections: readonly Collection[]) => {
  let isRemoved = false;
  const using = <T>(use: () => T): T => orUnavailable(path, () => guarded(id, path, mark, use));
  const { reader, version } = using(() => {
    const db = openForReading(path);
    const opened = generationReader(db, collections);
    // SQLite opens its other files at the first query; once open, they may be removed.
    opened.control();
    // `data_version` only reports changes by other connections, and nothing is written through this one.
    return { reader: opened, version: dataVersion(db) };
  });
  return {
    read: <T>(read: (reader: GenerationReader) => T): T => using(() => read(reader)),
    control: (): Control => {
      if (isRemoved) throw generationRemoved(id);
      return using(reader.control);
    },
    changeToken: (): number => using(version),
    close: (): void => reader.db.close(),
    closeRemoved: (): void => {
      isRemoved = true;
      reader.db.close();
    },
  };
};

/** How many values are searched for in one turn of the event loop. */
const AT_ONCE = 4;

const readerOf = ({ read, control, changeToken }: ReturnType<typeof connectionTo>): Reader => ({
  get: async (...args) => read((db) => db.get(...args)),
  find: async (...args) => read((db) => db.find(...args)),
  countsBefore: async (tenantId, collection, line, values) => {
    const counts: number[] = [];
    for (const value of values) {
      if (counts.length % AT_ONCE === AT_ONCE - 1) await yieldToEventLoop();
      counts.push(read((db) => db.countBefore(tenantId, collection, line, value)));
    }
    return counts;
  },
  scan: async (...scope) => read((db) => db.scan(...scope)),
  applied: async () => control().applied,
  changeToken,
});

export const sqliteGeneration = (
  at: GenerationFile,
  collections: readonly Collection[],
  maxCommitBytes: number,
  send: Send,
): SqliteGeneration => {
  const { id } = at;
  const connection = connectionTo(at, collections);
  const { read, control, close } = connection;
  const { look, ...looking } = lookingAt(at);
  const reader = readerOf(connection);
  const flatten = flattening(collections, maxCommitBytes);

  return {
    id,
    maxCommitBytes,
    reader,
    control: async () => control(),
    scan: reader.scan,
    // On the writing connection, since a commit invalidates the page cache of all others.
    load: (keys) => send('load', id, keys),
    commit: async (n, to, writes) => send('commit', id, n, to, flatten(writes)),
    snapshot: async (keys) =>
      read(({ db, load, ...reading }) =>
        inReadTransaction(db, () => ({ control: reading.control(), documents: load(keys) })),
      ),
    scanTexts: async (...scope) => read((db) => db.scanTexts(...scope)),
    look,
    close,
    closeRemoved: () => {
      connection.closeRemoved();
      looking.closeRemoved();
    },
  };
};
