import { linkSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fault, messageOf, type Fault } from '../../fault';
import { isJsonObject } from '../../json';
import { NO_EVENTS, type Beginning } from './backup-events';
import { putFile } from './log-file';
import { positionOf } from './reader';

export const MANIFEST = 'manifest.json';

/** The beginning of a log that a backup covers. */
export interface Manifest extends Beginning {
  /** The identity of the log. Undefined: the first backup into the folder is not finished. */
  readonly identity?: string;
}

export const unusable = (why: string): Fault => fault('backup_unusable', why);

const parsed = (text: string): Manifest | undefined => {
  const value: unknown = JSON.parse(text);
  const { format, identity, events, last_position, chain } = isJsonObject(value) ? value : {};
  if (format !== 2) return undefined;
  if (identity === undefined) return NO_EVENTS;
  return typeof identity === 'string' && typeof events === 'number' && typeof chain === 'string'
    ? { identity, events, last: Number(last_position), chain }
    : undefined;
};

export const readManifest = (folder: string): Manifest => {
  let found: Manifest | undefined;
  try {
    found = parsed(readFileSync(join(folder, MANIFEST), 'utf8'));
  } catch (error) {
    throw unusable(
      `The folder ${folder} contains no backup: its ${MANIFEST} cannot be read (${messageOf(error)}).`,
    );
  }
  if (found !== undefined) return found;
  throw unusable(
    `The ${MANIFEST} in ${folder} is not that of a backup, or was made by a newer tenant-ledger.`,
  );
};

const write = (folder: string, manifest: object, put: typeof renameSync): void => {
  const text = `${JSON.stringify({ format: 2, ...manifest }, undefined, 2)}\n`;
  putFile(join(folder, MANIFEST), (path) => writeFileSync(path, text), put);
};

export const replaceManifest = (
  folder: string,
  { identity, events, last, chain }: Beginning & { readonly identity: string },
): void => write(folder, { identity, events, last_position: positionOf(last), chain }, renameSync);

/** Marks a folder as one for backups. Never replaces a manifest that another process wrote in the meantime. */
export const startManifest = (folder: string): void => write(folder, {}, linkSync);
