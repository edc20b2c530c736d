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
import { findLog, logPath, putFile } from '../event-log/sqlite/log-file';
import { codeOf, fault, messageOf, type Fault } from '../fault';
import { storeOf } from './log-address';

const unusable = (folder: string, why: string): Fault =>
  fault('data_dir_unusable', `The folder ${folder} cannot be used: ${why}.`);

/** Root may write into the folder of another user, who could not use the new files. */
export const mustNotBeRootIn = (folder: string): void => {
  const uid = statSync(folder, { throwIfNoEntry: false })?.uid ?? 0;
  if (uid !== 0 && process.geteuid?.() === 0)
    throw unusable(folder, `it belongs to another user; run this as its owner (uid ${uid})`);
};

/** Not by Node's `recursive`, which never ends where a file system refuses a folder with ENOENT, as `/proc` does. */
const makeFolder = (folder: string): void => {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) return;
  if (!existsSync(dirname(folder))) makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process has just created it.
    if (codeOf(error) !== 'EEXIST' || !statSync(folder).isDirectory()) throw error;
  }
};

/** Creates the folder if it is missing, private to its owner. */
export const mustBeUsable = (folder: string): void => {
  try {
    makeFolder(resolve(folder));
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw unusable(folder, messageOf(error));
  }
  mustNotBeRootIn(folder);
};

/** Data that this user may not read must not look like none. */
export const mustBeReadable = (folder: string): void => {
  try {
    accessSync(folder, constants.R_OK | constants.X_OK);
    accessSync(logPath(folder), constants.R_OK);
  } catch (error) {
    if (codeOf(error) === 'EACCES') throw unusable(folder, messageOf(error));
  }
};

export const readModelsIn = (folder: string): string => join(folder, 'read-models');

/** Read models are created after the log, so their files prove that there was one. */
export const holdsReadModelFiles = (folder: string): boolean =>
  existsSync(readModelsIn(folder)) && readdirSync(readModelsIn(folder)).some((file) => file.endsWith('.db'));

/** For who creates no log: a wrong store must not look like an empty system. Final, since waiting does not help. */
export const noLogFound = (configuration: Configuration): Fault => {
  const { DATA_DIR, EVENTSTORE_URL, STREAM_PREFIX } = configuration;
  const where =
    EVENTSTORE_URL === ''
      ? `in the folder ${resolve(DATA_DIR)}. Name the folder of your service with DATA_DIR=PATH`
      : `with STREAM_PREFIX="${STREAM_PREFIX}" in ${storeOf(configuration)}. Name the store of your service with EVENTSTORE_URL and its prefix with STREAM_PREFIX`;
  return fault(
    'log_not_found',
    `There is no event log ${where}; a new one is made by "tenant-ledger serve" or "tenant-ledger tenant create".`,
    { isFinal: true },
  );
};

/** Read models without a log pass this check: opening the log reports them. */
export const mustHoldData = (configuration: Configuration): void => {
  const { DATA_DIR, EVENTSTORE_URL } = configuration;
  if (EVENTSTORE_URL !== '') return;
  mustBeReadable(DATA_DIR);
  if (!holdsReadModelFiles(DATA_DIR) && findLog(logPath(DATA_DIR)) === 'absent')
    throw noLogFound(configuration);
};

/** With less free space no database can be created, and SQLite often reports only "disk I/O error". */
const MIN_FREE_BYTES = 1_048_576;

/** Throws if the disk of an embedded store is full. With `error`, names it as the consequence. */
export const mustHaveRoom = ({ DATA_DIR, EVENTSTORE_URL }: Configuration, error?: unknown): void => {
  if (EVENTSTORE_URL !== '') return;
  const { bavail, bsize } = statfsSync(DATA_DIR);
  if (bavail * bsize >= MIN_FREE_BYTES) return;
  throw unusable(DATA_DIR, `its disk is full${error === undefined ? '' : ` (${messageOf(error)})`}`);
};

/** Also the minimum length of `SECRET`: signatures made with an empty or truncated secret could be forged. */
const MIN_SECRET_LENGTH = 32;

/** The secret stored with the data. The first process creates it; readable by the owner only. */
export const storedSecret = (folder: string): string => {
  const path = join(folder, 'secret');
  const made = randomBytes(MIN_SECRET_LENGTH).toString('base64url');
  try {
    if (!existsSync(path)) putFile(path, (temporary) => writeFileSync(temporary, made, { mode: 0o600 }));
  } catch (error) {
    throw unusable(folder, messageOf(error));
  }
  const secret = readFileSync(path, 'utf8');
  if (secret.length >= MIN_SECRET_LENGTH) return secret;
  throw fault('data_dir_unusable', `The secret ${path} is damaged. Delete it: a new one is made then.`);
};
