import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projections } from '../projections/projections';
import type { Configuration } from './configuration';
import type { EventLog } from './event-log/event-log';
import { sqliteEventLog } from './event-log/sqlite/sqlite-event-log';
import { streamNames } from './event-log/streams';
import { codeOf, fault } from './fault';
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
  /** Signs what clients bring back. */
  readonly secret: string;
  close(): Promise<void>;
}

const packageJson = (folder: string): string =>
  existsSync(join(folder, 'package.json')) ? join(folder, 'package.json') : packageJson(join(folder, '..'));

export const programVersion = (): string =>
  (JSON.parse(readFileSync(packageJson(__dirname), 'utf8')) as { version: string }).version;

/** Made once, by whoever comes first, and readable for the owner only. */
const keptSecret = (folder: string): string => {
  const path = join(folder, 'secret');
  if (existsSync(path)) return readFileSync(path, 'utf8');
  const mine = `${path}.${process.pid}`;
  writeFileSync(mine, randomBytes(32).toString('base64url'), { mode: 0o600 });
  try {
    linkSync(mine, path);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
  unlinkSync(mine);
  return readFileSync(path, 'utf8');
};

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
    secret: configuration.SECRET === '' ? keptSecret(folder) : configuration.SECRET,
    close: async () => {
      await projecting.stop();
      await readModels.close();
      await snapshots.close();
      await log.close();
    },
  };
};
