import { randomBytes, randomUUID } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  statfsSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { codeOf, fault, messageOf, type Fault } from './fault';

const unusable = (named: string, why: string): Fault =>
  fault('data_dir_unusable', `${named} ${why}. Choose another folder.`);

const asConfigured = (folder: string): string => `DATA_DIR=${folder}`;

const whyUnusable: Readonly<Record<string, string>> = {
  EEXIST: 'is a file, not a folder',
  ENOTDIR: 'lies inside a file, not in a folder',
  EROFS: 'is on a read-only disk',
  ENOSPC: 'is on a full disk',
  EACCES: 'cannot be written by this user',
  EPERM: 'cannot be written by this user',
};

const nearestThere = (path: string): string => (existsSync(path) ? path : nearestThere(dirname(path)));

export const mustBeUsable = (folder: string, named = asConfigured(folder)): void => {
  try {
    accessSync(nearestThere(folder), constants.W_OK);
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw unusable(named, whyUnusable[codeOf(error) ?? ''] ?? `cannot be made (${messageOf(error)})`);
  }
};

/** With less free space no database can be made; SQLite's own words for that are often just "disk I/O error". */
const LEAST_FREE_BYTES = 1_048_576;

/** Says that the disk is full, also where that was the cause of another error. */
export const mustHaveRoom = (folder: string, error?: unknown): void => {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= LEAST_FREE_BYTES) return;
  const what = error === undefined ? '' : ` (${messageOf(error).replace(/\.$/, '')})`;
  throw unusable(asConfigured(folder), `is on a full disk${what}`);
};

/** As short as `SECRET` may be. */
const SHORTEST_SECRET = 32;

/** What is signed with an empty or cut secret could be forged. */
const readSecret = (path: string): string => {
  const secret = readFileSync(path, 'utf8');
  if (secret.length >= SHORTEST_SECRET) return secret;
  throw fault('data_dir_unusable', `The secret ${path} is damaged. Delete it: another one is made then.`);
};

/** The secret that is kept with the data: made once, by whoever comes first, and readable for the owner only. */
export const keptSecret = (folder: string): string => {
  const path = join(folder, 'secret');
  if (existsSync(path)) return readSecret(path);
  const mine = `${path}.${randomUUID()}`;
  writeFileSync(mine, randomBytes(32).toString('base64url'), { mode: 0o600, flush: true });
  try {
    linkSync(mine, path);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
  unlinkSync(mine);
  return readSecret(path);
};
