import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isoNow } from '../async/clock';
import type { Configuration } from '../configuration';
import * as sqlite from '../event-log/sqlite/backup';
import { logPath } from '../event-log/sqlite/log-file';
import { fault } from '../fault';
import { mustBeReadable, mustBeUsable, mustNotBeRootIn } from './data-folder';
import { storeOf } from './log-address';

export { verifyBackup, type BackedUp, type OnProgress } from '../event-log/sqlite/backup';

/** An event store is backed up with its own tools. */
const embeddedFolder = (configuration: Configuration): string => {
  if (configuration.EVENTSTORE_URL === '') return configuration.DATA_DIR;
  throw fault(
    'backup_unusable',
    `The event log is in ${storeOf(configuration)}. Back it up with the means of the event store, or copy it with \`tenant-ledger log copy\`: docs/backup.md says how.`,
  );
};

/** In the data folder: when the last backup was made. */
const markIn = (folder: string): string => join(folder, 'last-backup');

/** NaN: none is known. */
export const lastBackupMs = (folder: string): number => {
  try {
    return Date.parse(readFileSync(markIn(folder), 'utf8').trim());
  } catch {
    return NaN;
  }
};

/** Since the last backup of an embedded log; if there was none, since the log was created. Undefined: it cannot be read. */
export const backupAgeSeconds = ({ DATA_DIR, EVENTSTORE_URL }: Configuration): number | undefined => {
  if (EVENTSTORE_URL !== '') return undefined;
  try {
    const lastMs = lastBackupMs(DATA_DIR) || statSync(logPath(DATA_DIR)).birthtimeMs;
    return (Date.now() - lastMs) / 1_000;
  } catch {
    return undefined;
  }
};

export const createBackup = (
  configuration: Configuration,
  folder: string,
  onProgress: sqlite.OnProgress,
): sqlite.BackedUp => {
  const source = embeddedFolder(configuration);
  mustBeReadable(source);
  mustNotBeRootIn(source);
  mustBeUsable(folder);
  const created = sqlite.createBackup(source, folder, onProgress);
  try {
    writeFileSync(markIn(source), `${isoNow()}\n`, { mode: 0o600 });
  } catch {
    // The backup is good all the same. Its age shows too much then, and never too little.
  }
  return created;
};

export const restoreBackup = (
  configuration: Configuration,
  folder: string,
  onProgress: sqlite.OnProgress,
): sqlite.BackedUp => {
  const target = embeddedFolder(configuration);
  mustBeUsable(target);
  return sqlite.restoreBackup(folder, target, onProgress);
};
