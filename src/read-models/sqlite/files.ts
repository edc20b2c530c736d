import { closeSync, fsyncSync, openSync, rmSync, statSync } from 'node:fs';

/** Undefined: there is certainly no such file. */
export const inodeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino;

/** What was created in the folder stays after a power loss. */
export const syncFolder = (folder: string): void => {
  const opened = openSync(folder, 'r');
  fsyncSync(opened);
  closeSync(opened);
};

/** The file itself goes first: without its `-wal` file, it would be a database of an earlier time. */
export const unlinkDatabase = (path: string): void => {
  for (const ending of ['', '-wal', '-shm']) rmSync(`${path}${ending}`, { force: true });
};
