import { existsSync, renameSync, statSync } from 'node:fs';
import { codeOf, fault, messageOf } from '../fault';
import {
  checkpointAndClose,
  isDamagedFile,
  neverWait,
  openForReading,
  openForWriting,
  type Database,
} from './database';

/**
 * A file whose loss is harmless, written by a thread and read by others. A damaged one is set aside with one warning,
 * and another is created in its place.
 */
export interface DisposableFile {
  /** Undefined: there is no file yet, or it was damaged. */
  read<T>(work: (db: Database) => T): T | undefined;
  /** Calls the writer thread, and again if the file was damaged. */
  write<T>(call: () => Promise<T>): Promise<T>;
  close(): void;
}

const ENDINGS = ['', '-wal', '-shm'];

/** Another file may have been put in its place. */
const inodeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino;

/** Renames a damaged file, so that another one can be created. Returns its new name. */
export const setFileAside = (path: string): string => {
  const aside = `${path}.damaged`;
  for (const ending of ENDINGS)
    if (existsSync(`${path}${ending}`)) renameSync(`${path}${ending}`, `${aside}${ending}`);
  return aside;
};

/** A connection, opened again once another file is in the place of the first. */
const reopening = <T extends { readonly db: Database }>(path: string, open: () => T) => {
  let opened: { readonly inode: number | undefined; readonly as: T } | undefined;
  const close = (end: (db: Database) => void = (db) => db.close()): void => {
    if (opened !== undefined) end(opened.as.db);
    opened = undefined;
  };
  const current = (): T => {
    const inode = inodeOf(path);
    if (inode !== opened?.inode) close();
    // Before it is opened, in case it is replaced meanwhile; afterwards, if it is created.
    opened ??= { as: open(), inode: inode ?? inodeOf(path) };
    return opened.as;
  };
  return { current, close };
};

export const disposableFile = (
  path: string,
  report: (what: string, error: unknown) => void,
): DisposableFile => {
  const file = reopening(path, () => ({ db: openForReading(path) }));

  const setAside = (error: unknown): void => {
    file.close();
    const aside = setFileAside(path);
    report(
      `${path} was damaged: it is ${aside} now, and another is created. Nothing else is affected.`,
      error,
    );
  };

  return {
    read: (work) => {
      try {
        return existsSync(path) ? work(file.current().db) : undefined;
      } catch (error) {
        // The writer creates missing tables.
        if (messageOf(error).includes('no such table')) return undefined;
        if (!isDamagedFile(error, path)) throw error;
        setAside(error);
        return undefined;
      }
    },
    write: (call) =>
      call().catch((error: unknown) => {
        if (codeOf(error) !== 'contents_lost') throw error;
        setAside(error);
        return call();
      }),
    close: () => file.close(),
  };
};

/** The side of the writer thread: `open` creates the tables and prepares the statements. */
export const disposableWriter = <T>(path: string, open: (db: Database) => T) => {
  const { current, close } = reopening(path, () => {
    const db = openForWriting(path, 'NORMAL');
    try {
      const on = open(db);
      // Appends share the thread. A write that finds the file locked is retried.
      neverWait(db);
      return { db, on };
    } catch (error) {
      db.close();
      throw error;
    }
  });
  return {
    /** Throws `contents_lost` if the file is damaged. The next use opens it again. */
    use: <R>(work: (db: Database, on: T) => R): R => {
      try {
        const { db, on } = current();
        return work(db, on);
      } catch (error) {
        if (!isDamagedFile(error, path)) throw error;
        close();
        throw fault('contents_lost', messageOf(error));
      }
    },
    close: (): void => close(checkpointAndClose),
  };
};
