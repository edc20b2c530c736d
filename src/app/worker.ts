import { workerData } from 'node:worker_threads';
import { pause, threadMs } from '../async/clock';
import { answerInThread, failureOf, type Outcome, type ThreadBody } from '../async/thread';
import { programVersion, type Configuration } from '../configuration';
import type { Appended } from '../event-log/event-log';
import { logPath } from '../event-log/sqlite/log-file';
import { appending, type AppenderRequest, type AppendingBody } from '../event-log/sqlite/sqlite-event-log';
import { streamNames } from '../event-log/streams';
import { tailOf } from '../event-log/tail';
import { startFollowing } from '../projecting/follow-leased';
import { retryDue } from '../projecting/parked-tenants';
import type { ReplayDependencies } from '../projecting/project-tenants';
import { buildFirst } from '../projecting/rebuild';
import { knowingWaiters, liveProjection, showing, type Show, type Wanted } from '../projecting/show-tenants';
import { removeLeftovers, type ParkedTenant } from '../read-models/read-models';
import { isBusy } from '../sqlite/database';
import { TIMES } from '../times';
import { openStores, projector, type Stores } from './adapters';
import { projectingSlices } from './projecting-slices';
import type { WorkerReport, WorkerRequest } from './worker-thread';

/** What the thread runs that `worker-thread.ts` starts: it appends (`append`), and projects what was appended. */

const configuration = workerData as Configuration;
const isEmbedded = configuration.EVENTSTORE_URL === '';
const streams = streamNames(configuration.STREAM_PREFIX);
const ending = new AbortController();

/** What projects, once it has begun. */
interface Projecting {
  readonly show: Show;
  /** Learns what was appended to the embedded log, and how long that took. Returns the tenants that are shown. */
  readonly afterAppends?: (appended: Wanted, tookMs: number) => Promise<ReadonlySet<string>>;
  readonly stop: () => Promise<unknown>;
}

let appender: AppendingBody | undefined;
let projecting: Projecting | undefined;
let stopped: Promise<unknown> | undefined;

const onError = (what: string, error: unknown): void =>
  report({ type: 'error', what, failure: failureOf(error) });

const onFailure = (error: unknown): void => onError('Projecting failed and is tried again.', error);

const onParked = (tenant: ParkedTenant): void => report({ type: 'parked', tenant });

const replayOf = ({ log, readModels }: Stores): ReplayDependencies => ({
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

/** Appends do not wait for a first set, or for tenants that are retried. */
const beginEmbedded = async (replay: ReplayDependencies): Promise<Projecting> => {
  const live = liveProjection(replay, { onParked });
  if ((await live.current()) === undefined) await build(replay);
  const projection = await live.current();
  if (projection !== undefined) await retryDue(projection);
  const { afterAppends, stop } = projectingSlices(replay, live, {
    onError: onFailure,
    buildFirst: () => build(replay),
  });
  return { show: showing(live, { onError: onFailure }), afterAppends, stop };
};

/** In the cluster, every instance projects what it appends, and the one with the lease follows the log. */
const beginClustered = async (replay: ReplayDependencies): Promise<Projecting> => {
  const { lease } = replay.readModels;
  if (lease === undefined) throw new Error('These read models have no lease.');
  const tail = tailOf(replay, { onError: onFailure });
  const live = liveProjection(replay, {
    onParked,
    inMemory: async (tenantId, { position }, upTo) =>
      (await tail.reached(upTo, TIMES.tailMs)) ? tail.ofTenant(tenantId, position, upTo) : undefined,
  });
  const { show, isWaitedFor } = knowingWaiters(showing(live, { onError: onFailure }));
  const stopFollowing = startFollowing({
    ...replay,
    onError: onFailure,
    lease,
    live,
    tail,
    isWaitedFor,
    buildFirst: () => build(replay),
  });
  return {
    show,
    stop: () => Promise.all([stopFollowing(), tail.close()]),
  };
};

/**
 * A command that appends much, beside a server: whoever waits for a lock gets it in between, since it waits after an
 * append as long as that took.
 */
const beginShowingOnly = async (replay: ReplayDependencies): Promise<Projecting> => ({
  show: showing(liveProjection(replay, { onParked }), { onError: onFailure, isAtEase: true }),
  afterAppends: async (_, tookMs) => {
    await pause(tookMs);
    return new Set();
  },
  stop: async () => undefined,
});

const begin = async (showsOnly: boolean): Promise<void> => {
  const stores = await openStores(configuration, { use: 'worker', report: onError });
  try {
    const replay = replayOf(stores);
    await removeLeftovers(replay.readModels);
    const beginHere = showsOnly ? beginShowingOnly : isEmbedded ? beginEmbedded : beginClustered;
    const begun = await beginHere(replay);
    projecting = begun;
    ending.signal.addEventListener('abort', () => {
      stopped = begun.stop().then(stores.close);
    });
  } catch (error) {
    await stores.close();
    throw error;
  }
};

const project = async (showsOnly: boolean): Promise<void> => {
  while (!ending.signal.aborted)
    try {
      return await begin(showsOnly);
    } catch (error) {
      onError('Projecting cannot begin and is tried again.', error);
      await pause(TIMES.retryMs, ending.signal);
    }
};

const tenantOf = (request: AppenderRequest | undefined): string | undefined =>
  request?.type === 'append' ? streams.parse(request.stream)?.tenantId : undefined;

/** The tenants of what was appended, and up to where. */
const wantedOf = (requests: readonly AppenderRequest[], outcomes: readonly Outcome[]): Wanted => {
  const wanted = new Map<string, string>();
  for (const [at, request] of requests.entries()) {
    const tenantId = tenantOf(request);
    const outcome = outcomes[at];
    if (tenantId === undefined || outcome === undefined || !('value' in outcome)) continue;
    const { position } = outcome.value as Appended;
    if (position > (wanted.get(tenantId) ?? '')) wanted.set(tenantId, position);
  }
  return wanted;
};

/** Appends all of them in one transaction, then projects their tenants. */
const append = async (requests: readonly AppenderRequest[]): Promise<readonly Outcome[]> => {
  appender ??= appending({ path: logPath(configuration.DATA_DIR), prefix: streams.prefix });
  const began = threadMs();
  const outcomes = appender.answer(requests);
  if (projecting?.afterAppends === undefined) return outcomes;
  const shown = await projecting.afterAppends(wantedOf(requests, outcomes), threadMs() - began);
  return outcomes.map((outcome, at) => {
    if (!('value' in outcome) || !shown.has(tenantOf(requests[at]) ?? '')) return outcome;
    return { value: { ...(outcome.value as Appended), isShown: true } };
  });
};

const settled = async (outcome: Promise<Outcome | undefined>): Promise<unknown> => {
  const known = await outcome;
  if (known !== undefined && 'value' in known) return known.value;
  throw known?.error;
};

/** A server does not wait for a first build. */
const begun = async (showsOnly: boolean): Promise<true> => {
  const beginning = project(showsOnly);
  if (showsOnly) await beginning;
  return true;
};

const answer = (requests: readonly WorkerRequest[]): ReturnType<ThreadBody['answer']> => {
  const appends = requests.filter((one) => one.type === 'open' || one.type === 'append');
  const appended = appends.length === 0 ? Promise.resolve([]) : append(appends);
  let next = 0;
  return requests.map((request) => {
    if (request.type === 'project') return begun(request.showsOnly);
    if (request.type === 'show')
      return projecting?.show(request.tenantId, request.position, request.withinMs) ?? Promise.resolve(false);
    const at = next++;
    return settled(appended.then((outcomes) => outcomes[at]));
  });
};

const close = async (): Promise<void> => {
  // Exiting while a store is away is safe, because commits are atomic.
  setTimeout(() => process.exit(), TIMES.lastMs).unref();
  ending.abort();
  await stopped;
  appender?.close();
};

const report: (message: WorkerReport) => void = answerInThread({
  answer: (requests) => answer(requests as readonly WorkerRequest[]),
  isRetried: isBusy,
  close,
});
