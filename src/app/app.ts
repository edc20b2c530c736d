import { projections } from '../../projections/projections';
import { keyRecords } from '../access/key-records';
import type { Configuration } from '../configuration';
import type { EventLog } from '../event-log/event-log';
import { logWatch, type LogWatch } from '../event-log/log-watch';
import type { Streams } from '../event-log/streams';
import type { Fault } from '../fault';
import { cachedFolds } from '../ledger/folds';
import { ledger, type Ledger } from '../ledger/ledger';
import { furthestCheckpoint } from '../projecting/live-generations';
import { openProjecting, type Projecting } from '../projecting/projecting';
import type { ReplayDependencies } from '../projecting/rebuild';
import { TIMES, type Times } from '../times';
import { programVersion } from '../version';
import { openServing, openSnapshots, openStores, probeLog, type Report, type Serving } from './adapters';
import { mustBeUsable, mustHaveRoom, mustHoldData, noLogFound } from './data-folder';
import { storeOf } from './log-address';
import { openAll } from './open-all';
import type { WritingThread } from './writing-thread';

/** Everything that the HTTP API and the command line are built on. */
export interface App {
  readonly log: EventLog;
  /** Whether the log is reachable, whole and writable. Checks only on request. */
  readonly watch: LogWatch;
  /** Where the log is stored, without secrets. */
  readonly store: string;
  readonly ledger: Ledger;
  readonly projecting: Projecting;
  readonly streams: Streams;
  /** For queries about replays. The replays themselves run in worker threads. */
  readonly replay: Omit<ReplayDependencies, 'consumer'>;
  /** Opens what only a server needs. */
  openServing(): Promise<Serving>;
  /**
   * Throws if the disk of the read models is full: waiting for them would never end. With `error`, names it as the
   * consequence.
   */
  mustHaveRoom(error?: unknown): void;
  close(): Promise<void>;
}

const openParts = (configuration: Configuration, report: Report, options: AppOptions): Promise<App> =>
  openAll(async (closeLater) => {
    const { writing, createsData = true, times = TIMES, onLost = () => undefined } = options;
    if (writing !== undefined) closeLater(writing);
    const missingFault =
      createsData || configuration.EVENTSTORE_URL === '' ? undefined : noLogFound(configuration);
    const use = writing === undefined ? 'command' : 'server';
    const opening = { use, report, missingFault, writers: writing?.writers } as const;
    const stores = closeLater(await openStores(configuration, opening));
    const { log, streams, readModels, mongo } = stores;
    const replay = { log, streams, readModels, program: programVersion(), onError: report };
    const projecting = await openProjecting({ ...replay, projectors: projections, thread: writing?.project });
    closeLater({ close: projecting.stop });
    // After the check that the read models belong to this log, so that nothing is written to another log's database.
    const snapshots = closeLater(await openSnapshots(configuration, stores, opening));
    const watch = logWatch({
      log,
      checkpoint: () => furthestCheckpoint(projecting.live),
      report,
      onLost,
      probe: () => probeLog(configuration, stores),
    });
    closeLater({ close: async () => watch.stop() });
    const appending = options.measured?.(watch.log) ?? watch.log;
    const keys = closeLater(
      keyRecords({
        log: watch.log,
        streams,
        applications: () => projecting.reader('applications'),
        withoutLogMs: times.readsWithoutLogMs,
      }),
    );
    const folds = cachedFolds(log, snapshots, streams);
    return {
      log: appending,
      watch,
      store: storeOf(configuration),
      ledger: ledger({ log: appending, folds, streams, keys }),
      projecting,
      streams,
      replay,
      openServing: async () => closeLater(await openServing(configuration, mongo)),
      mustHaveRoom: (error) => {
        if (mongo === undefined) mustHaveRoom(configuration.DATA_DIR, error);
      },
    };
  });

export interface AppOptions {
  /** Writes to files and projects. Undefined: this thread does. */
  readonly writing?: WritingThread;
  /** Records metrics of the appends to a log. */
  readonly measured?: (log: EventLog) => EventLog;
  /** Called once the log is certain to be rolled back. The process must end: commands do when they next look. */
  readonly onLost?: (reason: Fault) => void;
  readonly times?: Times;
  /** False: fails if there is no log. */
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
