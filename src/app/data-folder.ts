import { randomBytes } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Configuration } from '../configuration';
import { findLog, LOG_FILE, logPath, putFile } from '../event-log/sqlite/log-file';
import { codeOf, fault, messageOf, type Fault } from '../fault';
import { storeOf } from './log-address';

const unusable = (named: string, why: string, remedy = 'Choose another folder.'): Fault =>
  fault('data_dir_unusable', `${named} ${why}. ${remedy}`);

const nameOf = (uid: number): string => {
  try {
    const line = new RegExp(`^([^:]+):[^:]*:${uid}:`, 'm').exec(readFileSync('/etc/passwd', 'utf8'));
    return line?.[1] ?? `with the id ${uid}`;
  } catch {
    return `with the id ${uid}`;
  }
};

/** Undefined: there is no such folder, or it is this user's own. */
const otherOwner = (folder: string): string | undefined => {
  const { uid } = statSync(folder, { throwIfNoEntry: false }) ?? {};
  return uid === undefined || uid === process.getuid?.() ? undefined : nameOf(uid);
};

/** What to do if this user may not write a folder. */
const asItsOwner = (folder: string): string | undefined => {
  const owner = otherOwner(folder);
  return owner === undefined
    ? undefined
    : `It belongs to the user ${owner}: run this as its owner, or choose another folder.`;
};

const asConfigured = (folder: string): string => `DATA_DIR=${folder}`;

const FULL = 'is on a full disk';
const MAKE_ROOM = 'Free some space, or use a larger disk.';

const whyUnusable: Readonly<Record<string, string>> = {
  EEXIST: 'is a file, not a folder',
  ENOTDIR: 'is inside a file, not in a folder',
  ENOENT: 'is in a place where no folder can be made',
  EROFS: 'is on a read-only disk',
  ENOSPC: FULL,
  EACCES: 'cannot be written by this user',
  EPERM: 'cannot be written by this user',
};

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Private to the owner. Another process may create it at the same time. */
const makeFolder = (path: string): void => {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (!isFolder(path)) throw error;
  }
};

/** One level at a time: in some places, such as /proc, Node's recursive mkdir never returns. */
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
    const code = codeOf(error) ?? '';
    const isForbidden = code === 'EACCES' || code === 'EPERM';
    const remedy = isForbidden ? asItsOwner(folder) : code === 'ENOSPC' ? MAKE_ROOM : undefined;
    throw unusable(named, whyUnusable[code] ?? `cannot be made (${messageOf(error)})`, remedy);
  }
};

/** Throws if there is data that this user may not read: to look for it would find nothing. */
export const mustBeReadable = (folder: string, named = asConfigured(folder)): void => {
  for (const path of [folder, logPath(folder)])
    try {
      accessSync(path, path === folder ? constants.R_OK | constants.X_OK : constants.R_OK);
    } catch (error) {
      if (codeOf(error) === 'EACCES') throw unusable(named, 'cannot be read by this user', asItsOwner(path));
    }
};

export const readModelsIn = (folder: string): string => join(folder, 'read-models');

/** Read models are created after the log, so their files prove that there was one. */
export const holdsReadModelFiles = (folder: string): boolean =>
  isFolder(readModelsIn(folder)) && readdirSync(readModelsIn(folder)).some((file) => file.endsWith('.db'));

/** Final, since waiting does not help. */
const notFound = (where: string): Fault =>
  fault(
    'log_not_found',
    `${where}; a new one is made by "tenant-ledger serve" or "tenant-ledger tenant create".`,
    { isFinal: true },
  );

/** For commands that create no data: a wrong store must not look like an empty system. */
export const noLogFound = (configuration: Configuration): Fault =>
  notFound(
    `There is no event log with STREAM_PREFIX="${configuration.STREAM_PREFIX}" in ${storeOf(configuration)}. Name the store of your service with EVENTSTORE_URL and its prefix with STREAM_PREFIX`,
  );

/**
 * The same for the data folder. Read models without a log pass this check: opening the log reports them.
 */
export const mustHoldData = ({ DATA_DIR, EVENTSTORE_URL }: Configuration): void => {
  if (EVENTSTORE_URL !== '') return;
  const folder = resolve(DATA_DIR);
  mustBeReadable(folder);
  if (existsSync(logPath(folder)) || holdsReadModelFiles(folder)) return;
  findLog(logPath(folder));
  throw notFound(
    `There is no event log in the folder ${folder}. Name the folder of your service with DATA_DIR=PATH`,
  );
};

/** With less free space no database can be created, and SQLite often reports only "disk I/O error". */
const MIN_FREE_BYTES = 1_048_576;

/** Throws if the disk is full. With `error`, names it as the consequence. */
export const mustHaveRoom = (folder: string, error?: unknown): void => {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= MIN_FREE_BYTES) return;
  const what = error === undefined ? '' : ` (${messageOf(error).replace(/\.$/, '')})`;
  throw unusable(asConfigured(folder), `${FULL}${what}`, MAKE_ROOM);
};

const isOpenToOthers = (path: string): boolean =>
  ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0;

/** A warning if other users can read existing data: its permissions are not changed. Undefined: it is private. */
export const openToOthers = (folder: string): string | undefined => {
  const path = resolve(folder);
  const exposed = [LOG_FILE, 'secret', 'key-uses.db', 'snapshots.db', 'read-models'].filter((name) =>
    isOpenToOthers(join(path, name)),
  );
  if (process.platform === 'win32' || !isOpenToOthers(path) || exposed.length === 0) return undefined;
  return `Other users of this machine may read data in ${path} (${exposed.join(', ')}). Make it private with: chmod -R go= ${path}`;
};

/** Also the minimum length of `SECRET`. */
const MIN_SECRET_LENGTH = 32;

/** Signatures made with an empty or truncated secret could be forged. */
const readSecret = (path: string): string => {
  const secret = readFileSync(path, 'utf8');
  if (secret.length >= MIN_SECRET_LENGTH) return secret;
  throw fault('data_dir_unusable', `The secret ${path} is damaged. Delete it: a new one is made then.`);
};

/** The secret stored with the data. The first process creates it; readable by the owner only. */
export const storedSecret = (folder: string): string => {
  const path = join(folder, 'secret');
  if (existsSync(path)) return readSecret(path);
  const secret = randomBytes(32).toString('base64url');
  putFile(path, (temporary) => writeFileSync(temporary, secret, { mode: 0o600 }));
  return readSecret(path);
};
