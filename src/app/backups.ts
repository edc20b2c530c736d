import type { Configuration } from '../configuration';
import {
  createBackup as createSqliteBackup,
  type BackedUp,
  type OnProgress,
} from '../event-log/sqlite/backup';
import { restoreBackup as restoreSqliteBackup } from '../event-log/sqlite/restore';
import { fault } from '../fault';
import { mustBeUsable, mustHaveRoom } from './data-folder';
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

export const createBackup = (
  configuration: Configuration,
  folder: string,
  onProgress: OnProgress,
): ReturnType<typeof createSqliteBackup> => {
  const source = embeddedFolder(configuration);
  mustBeUsable(folder, `The folder ${folder}`);
  return createSqliteBackup(source, folder, onProgress);
};

export const restoreBackup = async (
  configuration: Configuration,
  folder: string,
  onProgress: OnProgress,
): Promise<BackedUp> => {
  const target = embeddedFolder(configuration);
  mustBeUsable(target);
  try {
    return await restoreSqliteBackup(folder, target, onProgress);
  } catch (error) {
    mustHaveRoom(target, error);
    throw error;
  }
};
