import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projections } from '../../projections/projections';
import type { Configuration } from '../configuration';
import type { EventLog } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import type { Thread } from '../async/thread';
import { logPath } from '../event-log/sqlite/log-file';
import { sqliteEventLog, type Opening } from '../event-log/sqlite/sqlite-event-log';
import { streamNames, type Streams } from '../event-log/streams';
import { fault, type Fault } from '../fault';
import { mongoConnection, type MongoConnection } from '../mongodb/connection';
import { holdsReadModels } from '../mongodb/database';
import { sharedSecret } from '../mongodb/shared-secret';
import { compose } from '../../projections/compose';
import { mongodbReadModels } from '../read-models/mongodb/mongodb-read-models';
import type { ReadModels } from '../read-models/read-models';
import { sqliteReadModels } from '../read-models/sqlite/sqlite-read-models';
import { holdsReadModelFiles, mustBeReadable, mustBeUsable, readModelsIn, storedSecret } from './data-folder';
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

/** Short, because somebody is waiting at a terminal. A server waits for its stores as long as it takes. */
const COMMAND_WAIT_MS = 5_000;

const openMongo = async (
  { MONGODB_URL }: Configuration,
  { use, report }: Pick<StoreOptions, 'use' | 'report'>,
): Promise<MongoConnection | undefined> =>
  MONGODB_URL === '' ? undefined : mongoConnection(MONGODB_URL, { waitMs: waitMsOf(use), onError: report });

/** Read models without a log belong to another one, so no log is created next to them. */
const noLogHere = (configuration: Configuration): Fault =>
  fault(
    'read_models_of_another_log',
    `There is no log with STREAM_PREFIX="${configuration.STREAM_PREFIX}" in ${storeOf(configuration)}, but ${readModelStoreOf(configuration)} has read models of one. Check EVENTSTORE_URL, MONGODB_URL and STREAM_PREFIX. If a new log is meant, name another database in MONGODB_URL and start again.`,
    { isFinal: true },
  );

/** The client library of the event store is large, so it is loaded only when used. */
const eventStoreLog = (
  url: string,
  streams: Streams,
  waitMs: number,
  report: Report,
  creation: { readonly missingFault?: Fault | undefined; readonly isCopy?: boolean },
): Promise<EventLog> => {
  const { eventStoreDbEventLog } =
    require('../event-log/eventstoredb/eventstoredb-event-log') as typeof import('../event-log/eventstoredb/eventstoredb-event-log');
  return eventStoreDbEventLog(url, streams, { waitMs, onError: report, ...creation });
};

/** How long a command, or whoever opens a file, waits for a lock that another process holds. */
const FILE_BUSY_MS = 5_000;

/** What the stores are opened for: a worker projects between appends, and waits for no lock. */
export type StoreUse = 'server' | 'worker' | 'command';

const waitMsOf = (use: StoreUse): number => (use === 'server' ? Infinity : COMMAND_WAIT_MS);

interface StoreOptions {
  readonly use: StoreUse;
  readonly report: Report;
  /** Thrown if there is no log. Undefined: one is created. */
  readonly missingFault?: Fault | undefined;
  /** What appends to the embedded log. By default the calling thread does. */
  readonly appender?: Thread | undefined;
}

const openingOf = (use: StoreUse, mustExist: boolean): Opening => {
  if (use === 'worker') return 'read';
  return mustExist ? (use === 'server' ? 'write' : 'read') : 'create';
};

const openLogOf = (
  configuration: Configuration,
  streams: Streams,
  { use, report, missingFault, appender }: StoreOptions,
): Promise<EventLog> => {
  const { DATA_DIR, EVENTSTORE_URL } = configuration;
  if (EVENTSTORE_URL !== '')
    return eventStoreLog(EVENTSTORE_URL, streams, waitMsOf(use), report, { missingFault });
  return sqliteEventLog(DATA_DIR, streams, {
    opening: openingOf(use, missingFault !== undefined),
    ...(appender === undefined ? {} : { appender: () => appender }),
  });
};

export const openStores = (configuration: Configuration, options: StoreOptions): Promise<Stores> =>
  openAll(async (closeLater) => {
    const { DATA_DIR, STREAM_PREFIX } = configuration;
    const streams = streamNames(STREAM_PREFIX);
    const mongo = await openMongo(configuration, options);
    if (mongo !== undefined) closeLater(mongo);
    const hasReadModels =
      mongo === undefined ? holdsReadModelFiles(DATA_DIR) : await holdsReadModels(mongo.db, mongo.place);
    const missingFault = hasReadModels ? noLogHere(configuration) : options.missingFault;
    const log = closeLater(await openLogOf(configuration, streams, { ...options, missingFault }));
    const { version, collections } = projector;
    const busyMs = options.use === 'worker' ? 0 : FILE_BUSY_MS;
    const readModels = await (mongo === undefined
      ? sqliteReadModels({ folder: readModelsIn(DATA_DIR), version, collections, busyMs })
      : mongodbReadModels(mongo, { version, collections }));
    closeLater(readModels);
    return { log, streams, readModels, mongo };
  });

/** What only a server needs. */
export interface Serving {
  /** Seals the sessions of the portal. */
  readonly secret: string;
  /** Where instances share what they count. Undefined: each counts its own. */
  readonly mongo: MongoConnection | undefined;
}

export const openServing = async (
  { SECRET, DATA_DIR }: Configuration,
  mongo: MongoConnection | undefined,
): Promise<Serving> => {
  if (SECRET !== '') return { secret: SECRET, mongo };
  const secret = mongo === undefined ? storedSecret(DATA_DIR) : await mongo.run(sharedSecret(mongo.db));
  return { secret, mongo };
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
  if (/^esdb(\+discover)?:/.test(address)) {
    const notFound = fault(
      'log_not_found',
      `There is no event log with the prefix "${streams.prefix}" in ${withoutSecrets(address)}.`,
      { isFinal: true },
    );
    const missingFault = role === 'source' ? notFound : undefined;
    return eventStoreLog(address, streams, COMMAND_WAIT_MS, report, {
      missingFault,
      isCopy: role === 'target',
    });
  }
  const folder = folderOf(address);
  if (folder === undefined)
    throw fault(
      'log_not_found',
      `${withoutSecrets(address)} is not the address of an event log. Name a data folder by its path or as sqlite:PATH, or an event store as esdb://HOST:PORT.`,
    );
  if (role === 'source') mustBeReadable(folder);
  if (role === 'target') mustBeUsable(folder);
  else if (!existsSync(logPath(folder)))
    throw fault('log_not_found', `There is no event log in the folder ${folder}.`);
  return sqliteEventLog(folder, streams, { opening: role === 'source' ? 'read' : 'copy' });
};

/** Temporary read models for one replay. */
export interface Scratch {
  readonly readModels: ReadModels;
  remove(): Promise<void>;
}

export const openScratch = (): Scratch => {
  const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-'));
  const { version, collections } = projector;
  const readModels = sqliteReadModels({ folder, version, collections });
  return {
    readModels,
    remove: async () => {
      await readModels.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
