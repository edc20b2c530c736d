import { projections } from '../../projections/projections';
import { accessRecord, type AccessRecord } from '../access/access-record';
import { keyCheck } from '../access/key-check';
import type { Configuration } from '../configuration';
import { NEWEST_FORMAT } from '../domain/formats';
import { appendToEnd } from '../event-log/append-to-end';
import type { EventLog, NewEvent } from '../event-log/event-log';
import { holdingBack } from '../event-log/holding-back';
import { logWatch, type LogWatch } from '../event-log/log-watch';
import type { Streams } from '../event-log/streams';
import { fault } from '../fault';
import type { KeyUses } from '../key-uses/key-uses';
import { cachedFolds } from '../ledger/folds';
import { ledger, type Ledger } from '../ledger/ledger';
import { furthestCheckpoint } from '../projecting/live-generations';
import { openProjecting, type Projecting, type ProjectingWorkers } from '../projecting/projecting';
import type { ReplayParts } from '../projecting/rebuild';
import { programVersion } from '../version';
import {
  openKeptStores,
  openServing,
  openStores,
  probeLog,
  softwareOf,
  type Report,
  type Serving,
} from './adapters';
import { mustBeUsable, mustHaveRoom, mustHoldData, noLogFound } from './data-folder';
import { storeOf } from './log-address';
import { openAll } from './open-all';

/** What HTTP and the command line work with. */
export interface App {
  readonly log: EventLog;
  /** Whether the log is within reach, whole and writable; it looks only when asked to. */
  readonly watch: LogWatch;
  /** Where the log is kept, in words that may be shown. */
  readonly store: string;
  /** What keeps the log and the read models, with versions. */
  software(): Promise<readonly string[]>;
  readonly ledger: Ledger;
  readonly projecting: Projecting;
  readonly streams: Streams;
  /** What is refused to known keys. */
  readonly access: AccessRecord;
  readonly keyUses: KeyUses;
  /** What can be asked about replays without running one; they run in threads of their own. */
  readonly replay: Omit<ReplayParts, 'consumer'>;
  /** What a server needs besides. */
  openServing(): Promise<Serving>;
  /** Throws when the disk of the read models is full: nothing that waits for them will go on then. */
  mustHaveRoom(): void;
  close(): Promise<void>;
}

/** Nobody waits for the record of what was refused. */
const RECORD_MS = 10_000;

/** Before anything is read or projected: tenants would be parked at what this program does not know. */
const mustKnow = (format: number): void => {
  if (format > NEWEST_FORMAT)
    throw fault(
      'log_of_newer_program',
      `The event log has format ${format}, and this program knows formats up to ${NEWEST_FORMAT}. Start the program that upgraded the log, or a newer one.`,
    );
};

const openParts = (
  configuration: Configuration,
  report: Report,
  { workers, createsData = true, observed = (log) => log }: AppOptions,
): Promise<App> =>
  openAll(async (closing) => {
    const use = workers === undefined ? 'command' : 'server';
    const ifMissing =
      createsData || configuration.EVENTSTORE_URL === '' ? undefined : noLogFound(configuration);
    const stores = closing(await openStores(configuration, { use, report, ifMissing }));
    const { log, streams, readModels, mongo } = stores;
    mustKnow(await log.format());
    const parts = { log, streams, readModels, program: programVersion(), onError: report };
    const projecting = await openProjecting({ ...parts, projectors: projections, workers });
    closing({ close: projecting.stop });
    // Not before the read models are known to be of this log: nothing is written to a database of another one.
    const { snapshots, keyUses } = await openKeptStores(configuration, stores);
    closing(snapshots);
    closing(keyUses);
    const watch = logWatch({
      log,
      checkpoint: () => furthestCheckpoint(projecting.live),
      report,
      onLost: () => void projecting.stop(),
      probe: () => probeLog(configuration, stores),
    });
    closing({ close: async () => watch.stop() });
    const appending = holdingBack(observed(watch.log));
    const append = (tenantId: string, events: readonly NewEvent[]) =>
      appendToEnd(appending, streams.activity(tenantId), events, 'no_stream', RECORD_MS);
    const access = closing(accessRecord({ append, warn: report }));
    const keys = closing(
      keyCheck({
        log: watch.log,
        streams,
        applications: () => projecting.reader('applications'),
        withoutLogMs: configuration.READS_WITHOUT_LOG_SECONDS * 1_000,
      }),
    );
    const bounds = { applications: configuration.MAX_APPLICATIONS, liveKeys: configuration.MAX_KEYS };
    const folds = cachedFolds(log, snapshots, streams);
    return {
      log: appending,
      watch,
      store: storeOf(configuration),
      software: () => softwareOf(stores),
      access,
      keyUses,
      ledger: ledger({ log: appending, folds, streams, keys, bounds }),
      projecting,
      streams,
      replay: parts,
      openServing: async () => closing(await openServing(configuration, mongo)),
      mustHaveRoom: () => {
        if (mongo === undefined) mustHaveRoom(configuration.DATA_DIR);
      },
    };
  });

export interface AppOptions {
  /** They project in threads of their own; without them this thread projects. */
  readonly workers?: ProjectingWorkers;
  /** The same log, with whatever it does noted. */
  readonly observed?: (log: EventLog) => EventLog;
  /** False: a log that is not there is not made. */
  readonly createsData?: boolean;
}

export const openApp = async (
  configuration: Configuration,
  report: Report,
  options: AppOptions = {},
): Promise<App> => {
  if (options.createsData === false) mustHoldData(configuration);
  mustBeUsable(configuration.DATA_DIR);
  try {
    return await openParts(configuration, report, options);
  } catch (error) {
    mustHaveRoom(configuration.DATA_DIR, error);
    throw error;
  }
};
