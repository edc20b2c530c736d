import { workerData } from 'node:worker_threads';
import { pause, threadMs } from '../async/clock';
import { answerInThread, failureOf, type Outcome, type ThreadBody } from '../async/thread';
import { programVersion, type Configuration } from '../configuration';
import type { Appended, Position } from '../event-log/event-log';
import { logPath } from '../event-log/sqlite/log-file';
import { appending } from '../event-log/sqlite/sqlite-event-log';
import { fault } from '../fault';
import { startFollowing } from '../projecting/follow-log';
import { retryDue, parkedTenants } from '../projecting/parked-tenants';
import {
  liveProjection,
  readFolding,
  type ReplayDependencies,
  type Shown,
  type Step,
} from '../projecting/project';
import { buildFirst } from '../projecting/rebuild';
import { removeLeftovers, type ReadModelSet } from '../read-models/read-models';
import { isBusy } from '../sqlite/database';
import { TIMES } from '../times';
import { openStores, projector, type Stores } from './adapters';
import { PROJECT, type WorkerReport } from './worker-thread';

/** What the thread runs that `worker-thread.ts` starts: it appends (`append`), and projects what was appended. */

interface Slices {
  /** Projects a slice, up to a position or the end of the log. Resolves when it is done, whatever came of it. */
  run(upTo?: Position): Promise<void>;
  /** Resolves when the last slice is done. */
  stop(): Promise<void>;
}

const isUpTo = (shown: Shown | undefined, position: Position | undefined): boolean =>
  shown !== undefined && position !== undefined && shown.position >= position;

/**
 * Projects in the thread that appends, in slices: one after each group of appends; while there is more, another one; and
 * one every second.
 */
const slices = (step: () => Promise<Step>, onFailed: (error: unknown) => void): Slices => {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  let last: Promise<void> = Promise.resolve();

  const slice = async (upTo: Position | undefined): Promise<number> => {
    const began = threadMs();
    try {
      for (;;) {
        const { outcome, shown } = await step();
        if (outcome === 'at_end' || isUpTo(shown, upTo)) return TIMES.renewMs;
        if (outcome === 'busy') return TIMES.busyRetryMs;
        if (threadMs() - began >= TIMES.sliceMs) return 0;
      }
    } catch (error) {
      onFailed(error);
      return TIMES.retryMs;
    }
  };
  const runNow = async (upTo: Position | undefined): Promise<void> => {
    clearTimeout(timer);
    const waitMs = await slice(upTo);
    clearTimeout(timer);
    if (!isStopped) timer = setTimeout(() => void run(), waitMs);
  };
  const run = (upTo?: Position): Promise<void> => (last = last.then(() => runNow(upTo)));

  return {
    run,
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
      return last;
    },
  };
};

const configuration = workerData as Configuration;
const ending = new AbortController();

let appender: ThreadBody | undefined;
let betweenAppends: Slices | undefined;
let stopped: Promise<unknown> | undefined;

const onError = (what: string, error: unknown): void =>
  report({ type: 'error', what, failure: failureOf(error) });

const onFailure = (error: unknown): void => onError('Projecting failed and is tried again.', error);

const tell = ({ shown, parked }: Pick<Step, 'shown' | 'parked'>): void => {
  if (shown !== undefined) report({ type: 'shown', shown });
  for (const tenant of parked) report({ type: 'parked', tenant });
};

const replayOf = ({ log, streams, readModels }: Stores): ReplayDependencies => ({
  log,
  streams,
  readModels,
  projector,
  program: programVersion(),
  abort: ending.signal,
});

const build = (replay: ReplayDependencies): Promise<void> =>
  buildFirst(replay, (at) =>
    report({ type: 'building', progress: at.step === 'building' ? at.done / Math.max(1, at.total) : 1 }),
  );

/** Those that were parked before, or by a first build. */
const tellParked = async (set: ReadModelSet): Promise<void> => {
  for await (const tenant of parkedTenants(set)) report({ type: 'parked', tenant });
};

/** Begins to project, and returns how to stop. */
type Begin = (replay: ReplayDependencies) => Promise<() => Promise<void>>;

/** Appends do not wait for a first set, or for tenants that are retried. */
const beginEmbedded: Begin = async (replay) => {
  const { log, streams, readModels } = replay;
  if ((await readModels.live()) === undefined) await build(replay);
  const live = await readModels.live();
  if (live !== undefined) {
    await retryDue({ log, streams, set: live.set, folding: await readFolding(replay) });
    await tellParked(live.set);
  }
  const projectLive = liveProjection(replay, { sliceMs: () => (isAwaited() ? TIMES.sliceMs : undefined) });
  const step = async (): Promise<Step> => {
    const done = await projectLive();
    if (done === undefined) throw fault('read_models_unavailable', 'The read models are gone.');
    tell(done);
    return done;
  };
  const started = slices(step, onFailure);
  betweenAppends = started;
  void started.run();
  return started.stop;
};

/** In the cluster, the instance with the lease follows the log. */
const beginClustered: Begin = async (replay) => {
  const { lease } = replay.readModels;
  if (lease === undefined) throw new Error('These read models have no lease.');
  return startFollowing({
    ...replay,
    lease,
    sliceMs: () => TIMES.clusteredSliceMs,
    buildFirst: () => build(replay),
    onStep: tell,
    onError: onFailure,
  });
};

const begin = async (): Promise<void> => {
  const stores = await openStores(configuration, { use: 'worker', report: onError });
  try {
    const replay = replayOf(stores);
    await removeLeftovers(replay.readModels);
    const stop = await (configuration.EVENTSTORE_URL === '' ? beginEmbedded : beginClustered)(replay);
    ending.signal.addEventListener('abort', () => {
      stopped = stop().then(stores.close);
    });
  } catch (error) {
    await stores.close();
    throw error;
  }
};

const project = async (): Promise<void> => {
  while (!ending.signal.aborted)
    try {
      return await begin();
    } catch (error) {
      onError('Projecting cannot begin and is tried again.', error);
      await pause(TIMES.retryMs, ending.signal);
    }
};

let appendedAt = -Infinity;

/** Whether others wait for this thread, so that it should project in short slices. */
const isAwaited = (): boolean => threadMs() - appendedAt < TIMES.renewMs;

/** Appends all of them in one transaction, then projects them. */
const append = async (requests: readonly unknown[]): Promise<readonly Outcome[]> => {
  const { DATA_DIR, STREAM_PREFIX } = configuration;
  appender ??= appending({ path: logPath(DATA_DIR), prefix: STREAM_PREFIX });
  appendedAt = threadMs();
  const outcomes = await appender.answer(requests);
  const positions = outcomes.flatMap((outcome) =>
    'value' in outcome ? [(outcome.value as Appended).position] : [],
  );
  if (positions.length > 0) await betweenAppends?.run(positions.toSorted().at(-1));
  return outcomes;
};

const answer = async (requests: readonly unknown[]): Promise<readonly Outcome[]> => {
  const appends = requests.filter((request) => request !== PROJECT);
  if (appends.length < requests.length) void project();
  const outcomes = appends.length === 0 ? [] : [...(await append(appends))];
  return requests.map((request) => (request === PROJECT ? { value: true } : (outcomes.shift() as Outcome)));
};

const close = async (): Promise<void> => {
  // Exiting while a store is away is safe, because commits are atomic.
  setTimeout(() => process.exit(), TIMES.lastMs).unref();
  ending.abort();
  await stopped;
  await appender?.close();
};

const report: (message: WorkerReport) => void = answerInThread({
  answer,
  isRetried: isBusy,
  close,
});
