import { accessSync, constants, existsSync, mkdirSync, readFileSync, statfsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projections } from '../projections/projections';
import type { Configuration } from './configuration';
import type { EventLog } from './event-log/event-log';
import { sqliteEventLog } from './event-log/sqlite/sqlite-event-log';
import { streamNames } from './event-log/streams';
import { codeOf, fault, messageOf, type Fault } from './fault';
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
  /** Throws when the disk of the data is full: nothing that waits for a write will go on then. */
  mustHaveRoom(): void;
  close(): Promise<void>;
}

const packageJson = (folder: string): string =>
  existsSync(join(folder, 'package.json')) ? join(folder, 'package.json') : packageJson(join(folder, '..'));

export const programVersion = (): string =>
  (JSON.parse(readFileSync(packageJson(__dirname), 'utf8')) as { version: string }).version;

const unusable = (folder: string, why: string): Fault =>
  fault('data_dir_unusable', `DATA_DIR=${folder} ${why}. Choose another folder.`);

const whyUnusable: Readonly<Record<string, string>> = {
  EEXIST: 'is a file, not a folder',
  ENOTDIR: 'lies inside a file, not in a folder',
  EROFS: 'is on a read-only disk',
  ENOSPC: 'is on a full disk',
  EACCES: 'cannot be written by this user',
  EPERM: 'cannot be written by this user',
};

const nearestThere = (path: string): string => (existsSync(path) ? path : nearestThere(dirname(path)));

const mustBeUsable = (folder: string): void => {
  try {
    accessSync(nearestThere(folder), constants.W_OK);
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw unusable(folder, whyUnusable[codeOf(error) ?? ''] ?? `cannot be made (${messageOf(error)})`);
  }
};

/** With less free space no database can be made; SQLite's own words for that are often just "disk I/O error". */
const LEAST_FREE_BYTES = 1_048_576;

const mustHaveRoom = (folder: string, error?: unknown): void => {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= LEAST_FREE_BYTES) return;
  const what = error === undefined ? '' : ` (${messageOf(error).replace(/\.$/, '')})`;
  throw unusable(folder, `is on a full disk${what}`);
};

export const openApp = async (
  configuration: Configuration,
  onTrouble: (what: string, error: unknown) => void,
): Promise<App> => {
  const folder = configuration.DATA_DIR;
  mustBeUsable(folder);
  const opened: { close(): Promise<void> }[] = [];
  const closing = <T extends { close(): Promise<void> }>(part: T): T => {
    opened.unshift(part);
    return part;
  };
  const close = async (): Promise<void> => {
    for (const part of opened) await part.close();
  };

  try {
    const streams = streamNames(configuration.STREAM_PREFIX);
    const log = closing(await sqliteEventLog(folder, streams));
    const snapshots = closing(sqliteSnapshots(folder));
    const readModels = closing(await sqliteReadModels(join(folder, 'read-models')));
    const projecting = await openProjecting({
      log,
      streams,
      readModels,
      projectors: projections,
      program: programVersion(),
      onTrouble,
    });
    closing({ close: projecting.stop });
    return {
      log,
      ledger: ledger(log, cachedFolds(log, snapshots, streams), streams),
      projecting,
      mustHaveRoom: () => mustHaveRoom(folder),
      close,
    };
  } catch (error) {
    await close();
    mustHaveRoom(folder, error);
    throw error;
  }
};
