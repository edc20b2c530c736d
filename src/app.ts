import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { projections } from '../projections/projections';
import type { Configuration } from './configuration';
import type { EventLog } from './event-log/event-log';
import { sqliteEventLog } from './event-log/sqlite/sqlite-event-log';
import { streamNames } from './event-log/streams';
import { fault } from './fault';
import { cachedFolds } from './ledger/folds';
import { ledger, type Ledger } from './ledger/ledger';
import { sqliteSnapshots } from './ledger/sqlite-snapshots';
import { openProjecting, type Projecting } from './projecting/projecting';
import { sqliteReadModels } from './read-models/sqlite/sqlite-read-models';

/** The parts that every door works with. This file alone knows which adapters are plugged in. */
export interface App {
  readonly log: EventLog;
  readonly ledger: Ledger;
  readonly projecting: Projecting;
  close(): Promise<void>;
}

const packageJson = (folder: string): string =>
  existsSync(join(folder, 'package.json')) ? join(folder, 'package.json') : packageJson(join(folder, '..'));

export const programVersion = (): string =>
  (JSON.parse(readFileSync(packageJson(__dirname), 'utf8')) as { version: string }).version;

const mustBeFolder = (path: string): void => {
  if (!existsSync(path) || statSync(path).isDirectory()) return;
  throw fault('data_dir_unusable', `DATA_DIR=${path} is a file, not a folder. Choose another one.`);
};

export const openApp = async (
  configuration: Configuration,
  onTrouble: (what: string, error: unknown) => void,
): Promise<App> => {
  const folder = configuration.DATA_DIR;
  mustBeFolder(folder);
  const streams = streamNames(configuration.STREAM_PREFIX);
  const snapshots = sqliteSnapshots(folder);
  const log = await sqliteEventLog(folder, streams);
  const readModels = await sqliteReadModels(join(folder, 'read-models'));
  const projecting = await openProjecting({
    log,
    streams,
    readModels,
    projectors: projections,
    program: programVersion(),
    onTrouble,
  });

  return {
    log,
    ledger: ledger(log, cachedFolds(log, snapshots, streams), streams),
    projecting,
    close: async () => {
      await projecting.stop();
      await readModels.close();
      await snapshots.close();
      await log.close();
    },
  };
};
