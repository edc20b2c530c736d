import type { Configuration } from '../configuration';
import * as sqlite from '../event-log/sqlite/backup';
import { fault } from '../fault';
import { mustBeUsable } from './data-folder';
import { storeOf } from './log-address';

export { verifyBackup, type BackedUp, type OnProgress } from '../event-log/sqlite/backup';

/** An event store has its own backups, which this program cannot make. */
const embeddedFolder = (configuration: Configuration): string => {
  if (configuration.EVENTSTORE_URL === '') return configuration.DATA_DIR;
  throw fault(
    'backup_unusable',
    `The event log is in ${storeOf(configuration)}. Back it up with the means of the event store, or copy it with \`tenant-ledger log copy\`: docs/backup.md says how.`,
  );
};

export const createBackup = (
  configuration: Configuration,
  folder: string,
  onProgress: sqlite.OnProgress,
): ReturnType<typeof sqlite.createBackup> => {
  const source = embeddedFolder(configuration);
  mustBeUsable(folder, `The folder ${folder}`);
  return sqlite.createBackup(source, folder, onProgress);
};

export const restoreBackup = (
  configuration: Configuration,
  folder: string,
  onProgress: sqlite.OnProgress,
): Promise<sqlite.BackedUp> => {
  const target = embeddedFolder(configuration);
  mustBeUsable(target);
  return sqlite.restoreBackup(folder, target, onProgress);
};
