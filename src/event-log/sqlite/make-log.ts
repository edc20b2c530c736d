import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../../fault';
import { openForAppending } from './appender';

/** What has been written stays through a loss of power; of a folder: the names in it. */
const sync = (path: string): void => {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
};

/**
 * It is made in memory. SQLite knows files by their inode: one that a connection of this process has open under
 * another name would share that name's `-shm` file, and other processes would not.
 */
const writeEmptyLog = (path: string, prefix: string): void => {
  const db = openForAppending(':memory:', prefix);
  try {
    db.prepare('VACUUM INTO ?').run(path);
  } finally {
    db.close();
  }
};

/**
 * Makes a log where there is none. It gets its name when it is complete: so a file of that name without tables is never
 * one that was just being made. Of several that make it at once, one wins.
 */
export const makeLog = (path: string, prefix: string): void => {
  const mine = `${path}.${randomUUID()}`;
  try {
    writeEmptyLog(mine, prefix);
    sync(mine);
    linkSync(mine, path);
    sync(dirname(path));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  } finally {
    rmSync(mine, { force: true });
  }
};
