import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { projections } from '../projections/projections';
import { accessRecord, type AccessRecord } from './access/access-record';
import type { Configuration } from './configuration';
import { keptSecret, mustBeUsable, mustHaveRoom } from './data-folder';
import type { EventLog, NewEvent } from './event-log/event-log';
import { sqliteEventLog } from './event-log/sqlite/sqlite-event-log';
import { streamNames, type Streams } from './event-log/streams';
import { appender } from './ingest/ingest';
import type { KeyUses } from './key-uses/key-uses';
import { sqliteKeyUses } from './key-uses/sqlite-key-uses';
import { cachedFolds } from './ledger/folds';
import { ledger, type Ledger } from './ledger/ledger';
import { sqliteSnapshots } from './ledger/sqlite-snapshots';
import { openProjecting, type Projecting } from './projecting/projecting';
import type { ReplayParts } from './projecting/rebuild';
import type { ReadModels } from './read-models/read-models';
import { isGone } from './read-models/sqlite/lease-holder';
import { sqliteReadModels } from './read-models/sqlite/sqlite-read-models';

/** The parts that every door works with. This file alone knows which adapters are plugged in. */
export interface App {
  readonly log: EventLog;
  readonly ledger: Ledger;
  readonly projecting: Projecting;
  readonly streams: Streams;
  /** What is refused to known keys. */
  readonly access: AccessRecord;
  readonly keyUses: KeyUses;
  /** What replay tooling works with. */
  readonly replay: ReplayParts;
  /** A place for a replay that is thrown away afterwards. */
  scratch(): Promise<Scratch>;
  /** Signs what clients bring back. */
  readonly secret: string;
  /** Throws when the disk of the data is full: nothing that waits for a write will go on then. */
  mustHaveRoom(): void;
  close(): Promise<void>;
}

const packageJson = (folder: string): string =>
  existsSync(join(folder, 'package.json')) ? join(folder, 'package.json') : packageJson(join(folder, '..'));

export const programVersion = (): string =>
  (JSON.parse(readFileSync(packageJson(__dirname), 'utf8')) as { version: string }).version;

export interface Scratch {
  readonly readModels: ReadModels;
  remove(): Promise<void>;
}

/** A replay that was killed could not tidy up after itself. */
const removeAbandoned = (folder: string): void => {
  for (const name of readdirSync(folder)) {
    const owner = /^scratch-([0-9]+)-/.exec(name)?.[1];
    if (owner !== undefined && isGone(`${hostname()} ${owner}`))
      rmSync(join(folder, name), { recursive: true, force: true });
  }
};

const openScratch = async (folder: string): Promise<Scratch> => {
  removeAbandoned(folder);
  const place = mkdtempSync(join(folder, `scratch-${process.pid}-`));
  const readModels = await sqliteReadModels(place);
  return {
    readModels,
    remove: async () => {
      await readModels.close();
      rmSync(place, { recursive: true, force: true });
    },
  };
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
    const keyUses = closing(sqliteKeyUses(folder));
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
    // A fresh appender each time: it remembers the end of every stream that it has seen.
    const append = (tenantId: string, events: readonly NewEvent[]) =>
      appender({ log, streams })(tenantId, events);
    const access = closing(accessRecord({ append, onTrouble }));
    return {
      log,
      access,
      keyUses,
      ledger: ledger(log, cachedFolds(log, snapshots, streams), streams),
      projecting,
      streams,
      replay: { log, streams, readModels, program: programVersion(), onTrouble },
      scratch: () => openScratch(folder),
      secret: configuration.SECRET === '' ? keptSecret(folder) : configuration.SECRET,
      mustHaveRoom: () => mustHaveRoom(folder),
      close,
    };
  } catch (error) {
    await close();
    mustHaveRoom(folder, error);
    throw error;
  }
};
