import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { projections } from '../../projections/projections';
import { accessRecord, type AccessRecord } from '../access/access-record';
import type { Configuration } from '../configuration';
import { keptSecret, mustBeUsable, mustHaveRoom } from './data-folder';
import { appendToEnd } from '../event-log/append-to-end';
import type { EventLog, NewEvent } from '../event-log/event-log';
import { logWatch, type LogWatch } from '../event-log/log-watch';
import { sqliteEventLog, type Opening } from '../event-log/sqlite/sqlite-event-log';
import { streamNames, type Streams } from '../event-log/streams';
import { probeWriteLock, watched } from '../event-log/writability';
import { fault, type Fault } from '../fault';
import type { KeyUses } from '../key-uses/key-uses';
import { sqliteKeyUses } from '../key-uses/sqlite-key-uses';
import { cachedFolds } from '../ledger/folds';
import { folderOf, holdsReadModels, noLogHere, readModelsIn, storeOf, withoutSecrets } from './log-address';
import { ledger, type Ledger } from '../ledger/ledger';
import { sqliteSnapshots } from '../ledger/sqlite-snapshots';
import {
  openProjecting,
  type Elsewhere,
  type Projecting,
  type ProjectingParts,
} from '../projecting/projecting';
import type { Assignment } from './projecting-workers';
import { furthestCheckpoint } from '../projecting/live-generations';
import type { ReplayParts } from '../projecting/rebuild';
import type { ReadModels } from '../read-models/read-models';
import { isGone } from '../read-models/sqlite/lease-holder';
import { sqliteReadModels } from '../read-models/sqlite/sqlite-read-models';
import { writerInPlace } from '../read-models/sqlite/writer-in-place';

/** The parts that every door works with. This file alone knows which adapters are plugged in. */
export interface App {
  readonly log: EventLog;
  /** Whether the log is within reach and whole; it looks only when it is told to. */
  readonly watch: LogWatch;
  /** Where the log is kept, in words that may be shown. */
  readonly store: string;
  readonly ledger: Ledger;
  readonly projecting: Projecting;
  readonly streams: Streams;
  /** What is refused to known keys. */
  readonly access: AccessRecord;
  readonly keyUses: KeyUses;
  /** What is asked of replays without one; they run in threads of their own. */
  readonly replay: ReplayParts;
  /** Signs what clients bring back. */
  readonly secret: string;
  /** Throws when the disk of the data is full: nothing that waits for a write will go on then. */
  mustHaveRoom(): void;
  /** Throws when the event log cannot be written now. */
  mustBeWritable(): Promise<void>;
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
  const readModels = await sqliteReadModels(place, writerInPlace);
  return {
    readModels,
    remove: async () => {
      await readModels.close();
      rmSync(place, { recursive: true, force: true });
    },
  };
};

/** Without an error it is good news. */
type OnTrouble = (what: string, error?: unknown) => void;

/** The client of the event store is heavy, and loaded only by those who use it. */
const eventStoreLog = (
  url: string,
  streams: Streams,
  waitSeconds: number,
  onTrouble: OnTrouble,
  unlessThere?: Fault,
): Promise<EventLog> => {
  const { eventStoreDbEventLog } =
    require('../event-log/eventstoredb/eventstoredb-event-log') as typeof import('../event-log/eventstoredb/eventstoredb-event-log');
  return eventStoreDbEventLog(url, streams, { waitMs: waitSeconds * 1_000, onTrouble, unlessThere });
};

const configuredLog = (
  configuration: Configuration,
  streams: Streams,
  onTrouble: OnTrouble,
  opening: Opening = holdsReadModels(configuration.DATA_DIR) ? 'writes' : 'makes',
): Promise<EventLog> => {
  const { DATA_DIR, EVENTSTORE_URL, EVENTSTORE_WAIT_SECONDS } = configuration;
  return EVENTSTORE_URL === ''
    ? sqliteEventLog(DATA_DIR, streams, opening)
    : eventStoreLog(EVENTSTORE_URL, streams, EVENTSTORE_WAIT_SECONDS, onTrouble, noLogHere(configuration));
};

/** Nobody waits for the record of what was refused. */
const RECORD_MS = 10_000;

/** Somebody stands before it: a server that is not there is soon said to be not there. */
const WAIT_SECONDS = 5;

/** An event log by its address, without the rest of the app. A source must be there already; a target may be made. */
export const openLog = async (
  address: string,
  streams: Streams,
  role: 'source' | 'target',
  onTrouble: OnTrouble,
): Promise<EventLog> => {
  if (/^esdb(\+discover)?:/.test(address)) return eventStoreLog(address, streams, WAIT_SECONDS, onTrouble);
  const folder = folderOf(address);
  if (folder === undefined || folder === '')
    throw fault(
      'log_not_found',
      `${withoutSecrets(address)} is no address of an event log. Name a data folder by its path or as sqlite:PATH, or an event store as esdb://HOST:PORT.`,
    );
  if (role === 'source' && !existsSync(join(folder, 'events.db')))
    throw fault('log_not_found', `There is no event log in the folder ${folder}.`);
  mustBeUsable(folder, `The folder ${folder}`);
  return sqliteEventLog(folder, streams, role === 'source' ? 'reads' : 'makes');
};

/** What was opened is closed in the opposite order, also when opening the rest fails. */
const openingAll = async <T>(
  open: (closing: <P extends { close(): Promise<void> }>(part: P) => P) => Promise<T>,
): Promise<T & { close(): Promise<void> }> => {
  const opened: { close(): Promise<void> }[] = [];
  const close = async (): Promise<void> => {
    for (const part of opened) await part.close();
  };
  try {
    const all = await open((part) => {
      opened.unshift(part);
      return part;
    });
    return { ...all, close };
  } catch (error) {
    await close();
    throw error;
  }
};

/** `elsewhere`: another thread of this process projects when this app is told to. */
export const openApp = async (
  configuration: Configuration,
  onTrouble: OnTrouble,
  elsewhere?: Elsewhere,
): Promise<App> => {
  const folder = configuration.DATA_DIR;
  mustBeUsable(folder);
  try {
    return await openingAll(async (closing) => {
      const streams = streamNames(configuration.STREAM_PREFIX);
      const opened = closing(await configuredLog(configuration, streams, onTrouble));
      /** An event store says by itself whether it can be reached. */
      const probe = async (): Promise<void> => {
        if (configuration.EVENTSTORE_URL !== '') return;
        mustHaveRoom(folder);
        await probeWriteLock(opened, streams.operator());
      };
      const { log, mustBeWritable } = watched(opened, probe);
      const snapshots = closing(sqliteSnapshots(folder, await log.identity()));
      const keyUses = closing(sqliteKeyUses(folder));
      const readModels = closing(await sqliteReadModels(readModelsIn(folder)));
      const program = programVersion();
      const parts = { log, streams, readModels, program, onTrouble };
      const projecting = await openProjecting({ ...parts, projectors: projections, elsewhere });
      closing({ close: projecting.stop });
      const watch = logWatch({
        log,
        checkpoint: () => furthestCheckpoint(projecting.live),
        report: onTrouble,
        onLost: () => void projecting.stop(),
      });
      closing({ close: async () => watch.stop() });
      const append = (tenantId: string, events: readonly NewEvent[]) =>
        appendToEnd(watch.log, streams.activity(tenantId), events, 'no_stream', RECORD_MS);
      const access = closing(accessRecord({ append, onTrouble }));
      return {
        log: watch.log,
        watch,
        store: storeOf(configuration),
        access,
        keyUses,
        ledger: ledger(watch.log, cachedFolds(log, snapshots, streams), streams),
        projecting,
        streams,
        replay: parts,
        secret: configuration.SECRET === '' ? keptSecret(folder) : configuration.SECRET,
        mustHaveRoom: () => mustHaveRoom(folder),
        mustBeWritable,
      };
    });
  } catch (error) {
    mustHaveRoom(folder, error);
    throw error;
  }
};

/** Projects until it is closed, in this thread, which does nothing else: it writes the read models by itself. */
export const openProjector = (
  { configuration, projections: names, holder }: Assignment,
  hear: Pick<Required<ProjectingParts>, 'onTrouble' | 'onMoved' | 'onParked'>,
): Promise<{ close(): Promise<void> }> =>
  openingAll(async (closing) => {
    const folder = configuration.DATA_DIR;
    const streams = streamNames(configuration.STREAM_PREFIX);
    const log = closing(await configuredLog(configuration, streams, hear.onTrouble, 'reads'));
    const readModels = closing(await sqliteReadModels(readModelsIn(folder), writerInPlace));
    const projectors = projections.filter(({ name }) => names.includes(name));
    const parts = { log, streams, readModels, projectors, program: programVersion(), holder };
    const projecting = await openProjecting({ ...parts, ...hear });
    closing({ close: projecting.stop });
    await projecting.start();
    return {};
  });

/** What a thread works with that replays and does nothing else: it writes by itself. */
export interface Replay {
  readonly parts: ReplayParts;
  /** A place for a replay that is thrown away afterwards. */
  scratch(): Promise<Scratch>;
  close(): Promise<void>;
}

export const openReplay = (configuration: Configuration, onTrouble: OnTrouble): Promise<Replay> =>
  openingAll(async (closing) => {
    const folder = configuration.DATA_DIR;
    const streams = streamNames(configuration.STREAM_PREFIX);
    const log = closing(await configuredLog(configuration, streams, onTrouble, 'reads'));
    const readModels = closing(await sqliteReadModels(readModelsIn(folder), writerInPlace));
    return {
      parts: { log, streams, readModels, program: programVersion(), onTrouble },
      scratch: () => openScratch(folder),
    };
  });
