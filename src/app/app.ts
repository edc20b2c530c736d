import { type Configuration, programVersion } from '../configuration';
import type { EventLog } from '../event-log/event-log';
import { logWatch, type LogWatch } from '../event-log/log-watch';
import { fault, type Fault } from '../fault';
import { cachedFolds } from '../ledger/folds';
import { ledger, type Ledger } from '../ledger/ledger';
import { knownServices, type KnownServices } from '../ledger/services';
import { knownLiveSet, type KnownLiveSet } from '../projecting/live-set';
import type { ReplayDependencies } from '../projecting/project-tenants';
import { mustHoldEventsOf } from '../projecting/rebuild';
import type { Show } from '../projecting/show-tenants';
import type { LiveSet } from '../read-models/read-models';
import { TIMES, type Times } from '../times';
import { openStores, projector, secretOf, sharedLimiterOf, type Report, type StoreUse } from './adapters';
import { catchingUp, type CatchingUp } from './catch-up';
import { mustBeUsable, mustHaveRoom, mustHoldData } from './data-folder';
import { readModelStoreOf, storeOf } from './log-address';
import { openAll } from './open-all';
import type { WorkerThread } from './worker-thread';

/** Everything that the HTTP API and the command line are built on. */
export interface App extends ReplayDependencies {
  /** Whether the log is whole and writable, as far as appends have shown. */
  readonly watch: LogWatch;
  /** Where the log is stored, without secrets. */
  readonly store: string;
  readonly ledger: Ledger;
  readonly services: KnownServices;
  /** What this process knows of the read models that answer queries. */
  readonly live: KnownLiveSet;
  /** Whether the live set shows a tenant up to a position in time. Whoever asks projects it. */
  readonly show: Show;
  readonly catchUp: CatchingUp['catchUp'];
  /** The secret of the service, also for a command. */
  secret(): Promise<string>;
  sharedLimiter(): ReturnType<typeof sharedLimiterOf>;
  close(): Promise<void>;
}

/** Read models belong to one log. With another, or one that was rolled back, their answers would be wrong. */
const mustMatch = async (log: EventLog, live: LiveSet, configuration: Configuration): Promise<void> => {
  if (live.control.log !== (await log.identity()))
    throw fault(
      'read_models_of_another_log',
      `The read models in ${readModelStoreOf(configuration)} were built from another event log. Name the right store, or build them from this log with: tenant-ledger projections rebuild`,
    );
  await mustHoldEventsOf(log, live);
};

export interface AppOptions {
  readonly use?: StoreUse;
  /** Appends and projects. Undefined: this thread does. */
  readonly worker?: WorkerThread | undefined;
  /** Records metrics of the appends to a log. */
  readonly measured?: (log: EventLog) => EventLog;
  /** Called once the log is certain to be rolled back. The process must end: commands do when they next look. */
  readonly onLost?: (reason: Fault) => void;
  readonly times?: Times | undefined;
}

const openParts = (configuration: Configuration, report: Report, options: AppOptions): Promise<App> =>
  openAll(async (closeLater) => {
    const { use = 'create', worker, times = TIMES, onLost = () => undefined } = options;
    if (worker !== undefined) closeLater(worker);
    const opening = { use, report, appender: worker?.appender, times };
    const { log, streams, readModels, mongo } = closeLater(await openStores(configuration, opening));
    const watch = logWatch({ log, report, onLost, times });
    closeLater({ close: async () => watch.stop() });
    const found = await readModels.live();
    if (found !== undefined && use !== 'repair') await mustMatch(log, found, configuration);
    const furthest = await found?.set.furthest();
    if (furthest !== undefined) watch.saw(furthest);
    const projecting = { streams, readModels, projector, program: programVersion() };
    const { show, catchUp } = catchingUp({ log, ...projecting }, (error) =>
      report('Projecting failed.', error),
    );
    const appending = options.measured?.(watch.log) ?? watch.log;
    const folds = cachedFolds({ log, streams }, { withoutLogMs: times.readsWithoutLogMs });
    return {
      ...projecting,
      log: appending,
      watch,
      store: storeOf(configuration),
      ledger: ledger({ log: appending, folds, streams }),
      services: knownServices({ log: appending, streams }, times.readsWithoutLogMs),
      live: knownLiveSet(readModels),
      show: worker?.show ?? show,
      catchUp,
      secret: () => secretOf(configuration, mongo),
      sharedLimiter: () => sharedLimiterOf(mongo),
    };
  });

/** In a cluster, nothing is kept in the data folder. */
export const openApp = async (
  configuration: Configuration,
  report: Report,
  options: AppOptions = {},
): Promise<App> => {
  const { DATA_DIR, EVENTSTORE_URL } = configuration;
  if (EVENTSTORE_URL !== '') return openParts(configuration, report, options);
  const { use = 'create' } = options;
  if (use !== 'create' && use !== 'server') mustHoldData(configuration);
  if (use !== 'look') mustBeUsable(DATA_DIR);
  try {
    return await openParts(configuration, report, options);
  } catch (error) {
    mustHaveRoom(configuration, error);
    throw error;
  }
};
