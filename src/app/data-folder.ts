import { randomBytes, randomUUID } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  statfsSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Configuration } from '../configuration';
import { codeOf, fault, messageOf, type Fault } from '../fault';
import { storeOf } from './log-address';

const unusable = (named: string, why: string): Fault =>
  fault('data_dir_unusable', `${named} ${why}. Choose another folder.`);

const asConfigured = (folder: string): string => `DATA_DIR=${folder}`;

const whyUnusable: Readonly<Record<string, string>> = {
  EEXIST: 'is a file, not a folder',
  ENOTDIR: 'is inside a file, not in a folder',
  ENOENT: 'is in a place where no folder can be made',
  EROFS: 'is on a read-only disk',
  ENOSPC: 'is on a full disk',
  EACCES: 'cannot be written by this user',
  EPERM: 'cannot be written by this user',
};

export const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Readable for the owner only. Another process may make it at the same moment. */
const makeFolder = (path: string): void => {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (!isFolder(path)) throw error;
  }
};

/** Step by step: in some places, such as /proc, Node would try for ever to create the whole path. */
const makeFolders = (path: string): void => {
  if (existsSync(path)) return accessSync(path, constants.W_OK);
  makeFolders(dirname(path));
  makeFolder(path);
};

export const mustBeUsable = (folder: string, named = asConfigured(folder)): void => {
  try {
    makeFolders(folder);
    makeFolder(folder);
  } catch (error) {
    throw unusable(named, whyUnusable[codeOf(error) ?? ''] ?? `cannot be made (${messageOf(error)})`);
  }
};

const holdsAny = (folder: string, names: readonly string[]): boolean =>
  names.some((name) => existsSync(join(folder, name)));

/** Waiting does not help. */
const notFound = (where: string): Fault =>
  fault(
    'data_not_found',
    `${where}; a new one is made by "tenant-ledger serve" or "tenant-ledger tenant create".`,
    { isFinal: true },
  );

/** For commands that create no data, where the folder holds none: a wrong store must not look like an empty system. */
export const noLogFound = (configuration: Configuration): Fault =>
  notFound(
    `There is no event log with STREAM_PREFIX="${configuration.STREAM_PREFIX}" in ${storeOf(configuration)}. Name the store of your service with EVENTSTORE_URL and its prefix with STREAM_PREFIX`,
  );

/**
 * The same for the folder: a wrong one must not look like an empty system. The log itself reports read models without a
 * log.
 */
export const mustHoldData = ({ DATA_DIR, EVENTSTORE_URL, MONGODB_URL }: Configuration): void => {
  const folder = resolve(DATA_DIR);
  const isEmbedded = EVENTSTORE_URL === '';
  if (!isEmbedded && MONGODB_URL !== '') return;
  if (holdsAny(folder, isEmbedded ? ['events.db', 'read-models'] : ['read-models', 'secret'])) return;
  const what = isEmbedded ? 'There is no event log' : 'No service has kept its read models';
  throw notFound(`${what} in the folder ${folder}. Name the folder of your service with DATA_DIR=PATH`);
};

/** With less free space no database can be made; SQLite's own words for that are often just "disk I/O error". */
const MIN_FREE_BYTES = 1_048_576;

/** Throws when the disk is full, also where that was the cause of another error. */
export const mustHaveRoom = (folder: string, error?: unknown): void => {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= MIN_FREE_BYTES) return;
  const what = error === undefined ? '' : ` (${messageOf(error).replace(/\.$/, '')})`;
  throw unusable(asConfigured(folder), `is on a full disk${what}`);
};

/** From now on this process creates files and folders that only their owner can use. */
export const makePrivateFiles = (): void => void process.umask(0o077);

const isOpenToOthers = (path: string): boolean =>
  ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0;

/** What an earlier release or somebody by hand has created stays as it is; undefined: it is private. */
export const openToOthers = (folder: string): string | undefined => {
  const path = resolve(folder);
  const found = ['events.db', 'secret', 'key-uses.db', 'snapshots.db', 'read-models'].filter((name) =>
    isOpenToOthers(join(path, name)),
  );
  if (process.platform === 'win32' || !isOpenToOthers(path) || found.length === 0) return undefined;
  return `Other users of this machine may read data in ${path} (${found.join(', ')}). Make it private with: chmod -R go= ${path}`;
};

/** The shortest that `SECRET` may be. */
const MIN_SECRET_LENGTH = 32;

/** What is signed with an empty or cut secret could be forged. */
const readSecret = (path: string): string => {
  const secret = readFileSync(path, 'utf8');
  if (secret.length >= MIN_SECRET_LENGTH) return secret;
  throw fault('data_dir_unusable', `The secret ${path} is damaged. Delete it: a new one is made then.`);
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
