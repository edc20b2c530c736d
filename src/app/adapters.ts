import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projections } from '../../projections/projections';
import { compose } from '../../projections/projector';
import type { WaitingForStore } from '../async/reachable-store';
import type { Thread } from '../async/thread';
import type { Configuration } from '../configuration';
import type { EventLog } from '../event-log/event-log';
import { logPath, type Opening } from '../event-log/sqlite/log-file';
import { sqliteEventLog } from '../event-log/sqlite/sqlite-event-log';
import { streamNames, type LedgerLog, type Streams } from '../event-log/streams';
import { fault, type Fault } from '../fault';
import type { SharedLimiter } from '../limits/rate-limits';
import { mongoConnection, type MongoConnection } from '../mongodb/connection';
import { holdsReadModels, sharedSecret } from '../mongodb/database';
import { mongodbReadModels } from '../read-models/mongodb/mongodb-read-models';
import type { ReadModels } from '../read-models/read-models';
import { sqliteReadModels } from '../read-models/sqlite/sqlite-read-models';
import { TIMES, type Times } from '../times';
import * as dataFolder from './data-folder';
import { folderOf, readModelStoreOf, storeOf, withoutSecrets } from './log-address';
import { openAll } from './open-all';

/** This file alone chooses the adapters of a configuration. */

/** Everything that this version of the program derives from the log. */
export const projector = compose(projections);

/** Without an error, it reports a recovery, which is logged at level info. */
export type Report = (what: string, error?: unknown) => void;

/** The event log and the read models of a configuration. Every thread that reads, projects or replays opens its own. */
export interface Stores extends LedgerLog {
  readonly readModels: ReadModels;
  /** The database that instances share, if configured. */
  readonly mongo: MongoConnection | undefined;
  close(): Promise<void>;
}

/** What stores are opened for. */
export type StoreUse =
  | 'server'
  /** The thread of a server, which projects between appends and never waits for a lock. */
  | 'worker'
  /** A command that may begin a new log. */
  | 'create'
  | 'change'
  /** A rebuild: it also takes read models of another log, or of events that this one no longer holds. */
  | 'repair'
  /** It creates nothing, and answers soon while a store is away. */
  | 'look';

/** How long to wait for the stores: somebody waits at a terminal for a command. */
const waitMsOf = (use: StoreUse, { waitMs, noAnswerMs }: Times): number => {
  if (use === 'server') return Infinity;
  return use === 'look' ? noAnswerMs : waitMs;
};

interface LogOptions extends WaitingForStore {
  readonly opening: Opening;
  /** Thrown if an event store has no log that must exist. */
  readonly missingFault: Fault;
  /** What appends to an embedded log. By default the calling thread does. */
  readonly appender?: Thread | undefined;
}

const isEventStore = (address: string): boolean => /^esdb(\+discover)?:/.test(address);

/** The client library of the event store is large, so it is loaded only when used. */
const openLogAt = (address: string, streams: Streams, options: LogOptions): Promise<EventLog> => {
  const { opening, missingFault, appender, ...waiting } = options;
  if (!isEventStore(address)) return sqliteEventLog(address, streams, { opening, appender });
  const { eventStoreDbEventLog } =
    require('../event-log/eventstoredb/eventstoredb-event-log') as typeof import('../event-log/eventstoredb/eventstoredb-event-log');
  const isCopy = opening === 'copy';
  const mayCreate = isCopy || opening === 'create';
  return eventStoreDbEventLog(address, streams, {
    ...waiting,
    isCopy,
    missingFault: mayCreate ? undefined : missingFault,
  });
};

/** Read models without a log belong to another one, so no log is created next to them. */
const noLogHere = (configuration: Configuration): Fault =>
  fault(
    'read_models_of_another_log',
    `There is no log with STREAM_PREFIX="${configuration.STREAM_PREFIX}" in ${storeOf(configuration)}, but ${readModelStoreOf(configuration)} has read models of one. Check EVENTSTORE_URL, MONGODB_URL and STREAM_PREFIX. If a new log is meant, name another database in MONGODB_URL and start again.`,
    { isFinal: true },
  );

interface StoreOptions extends Pick<LogOptions, 'appender'> {
  readonly use: StoreUse;
  readonly report: Report;
  readonly times?: Times;
}

export const openStores = (
  configuration: Configuration,
  { use, report, appender, times = TIMES }: StoreOptions,
): Promise<Stores> =>
  openAll(async (closeLater) => {
    const { DATA_DIR, EVENTSTORE_URL, MONGODB_URL, STREAM_PREFIX } = configuration;
    const waiting = { waitMs: waitMsOf(use, times), onError: report };
    const mongo = MONGODB_URL === '' ? undefined : closeLater(await mongoConnection(MONGODB_URL, waiting));
    const hasReadModels =
      mongo === undefined
        ? dataFolder.holdsReadModelFiles(DATA_DIR)
        : await mongo.run(holdsReadModels(mongo.db, mongo.place));
    const mayCreate = !hasReadModels && (use === 'server' || use === 'create');
    const streams = streamNames(STREAM_PREFIX);
    const opened = await openLogAt(EVENTSTORE_URL || DATA_DIR, streams, {
      ...waiting,
      opening: mayCreate ? 'create' : use === 'server' ? 'write' : 'read',
      missingFault: hasReadModels ? noLogHere(configuration) : dataFolder.noLogFound(configuration),
      appender,
    });
    const log = closeLater(opened);
    const { version, collections } = projector;
    const busyMs = use === 'worker' ? 0 : times.waitMs;
    const readModels = await (mongo === undefined
      ? sqliteReadModels({ folder: dataFolder.readModelsIn(DATA_DIR), version, collections, busyMs })
      : mongodbReadModels(mongo, { version, collections }));
    return { log, streams, readModels: closeLater(readModels), mongo };
  });

/** The secret of the service, from which its keys are made: configured, or made once and kept with the data. */
export const secretOf = async (
  { SECRET, DATA_DIR }: Configuration,
  mongo: MongoConnection | undefined,
): Promise<string> => {
  if (SECRET !== '') return SECRET;
  return mongo === undefined ? dataFolder.storedSecret(DATA_DIR) : mongo.run(sharedSecret(mongo.db));
};

/** The rate counters that instances share, if configured. Only a server needs them. */
export const sharedLimiterOf = async (
  mongo: MongoConnection | undefined,
): Promise<SharedLimiter | undefined> => {
  if (mongo === undefined) return undefined;
  const { mongoLimiter } = require('../limits/rate-limits') as typeof import('../limits/rate-limits');
  return mongo.run(mongoLimiter(mongo.db));
};

/**
 * Opens an event log by its address, without the rest of the app. A source must exist; a target, that of a copy, is
 * created if missing.
 */
export const openLog = async (
  address: string,
  streams: Streams,
  role: 'source' | 'target',
  report: Report,
): Promise<EventLog> => {
  const place = isEventStore(address) ? address : folderOf(address);
  if (place === undefined)
    throw fault(
      'log_not_found',
      `${withoutSecrets(address)} is not the address of an event log. Name a data folder by its path or as sqlite:PATH, or an event store as esdb://HOST:PORT.`,
    );
  const isSource = role === 'source';
  const where = isEventStore(place) ? `with the prefix "${streams.prefix}" in` : 'in the folder';
  const missingFault = fault('log_not_found', `There is no event log ${where} ${withoutSecrets(place)}.`, {
    isFinal: true,
  });
  if (!isEventStore(place)) (isSource ? dataFolder.mustBeReadable : dataFolder.mustBeUsable)(place);
  if (!isEventStore(place) && isSource && !existsSync(logPath(place))) throw missingFault;
  const waiting = { waitMs: TIMES.waitMs, onError: report };
  return openLogAt(place, streams, { ...waiting, opening: isSource ? 'read' : 'copy', missingFault });
};

/** Works with temporary read models. */
export const withScratch = async <T>(work: (readModels: ReadModels) => Promise<T>): Promise<T> => {
  const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-'));
  const { version, collections } = projector;
  const readModels = sqliteReadModels({ folder, version, collections });
  try {
    return await work(readModels);
  } finally {
    await readModels.close();
    rmSync(folder, { recursive: true, force: true });
  }
};
