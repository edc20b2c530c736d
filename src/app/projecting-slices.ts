import { threadMs } from '../async/clock';
import { turns } from '../async/concurrency';
import type { LedgerLog } from '../event-log/streams';
import { codeOf } from '../fault';
import { liveFollower, type Step } from '../projecting/follow-log';
import { MAX_BUILD_EVENTS, MAX_SLICE_EVENTS } from '../projecting/project-tenants';
import { showGroup, type LiveProjection, type Wanted } from '../projecting/show-tenants';
import { TIMES } from '../times';

interface SlicesOptions {
  readonly onError: (error: unknown) => void;
  /** Makes a set where there is none before the log was followed to its end once: one that was there is damaged. */
  readonly buildFirst: () => Promise<unknown>;
}

/** Runs one piece of work after the other, and some of it again and again. */
const slicesInTurn = (slice: () => Promise<number | void>) => {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const inTurn = turns(1);
  const nextIn = (ms: number): void => {
    clearTimeout(timer);
    if (!isStopped)
      timer = setTimeout(() => void inTurn(async () => nextIn((await slice()) ?? TIMES.retryMs)), ms);
  };
  const stop = async (): Promise<void> => {
    isStopped = true;
    clearTimeout(timer);
    await inTurn(async () => undefined);
  };
  return { inTurn, nextIn, stop };
};

/** Another process that is just projecting is left alone for a moment. */
const othersProjecting = () => {
  let seenAt = -Infinity;
  return {
    note: ({ outcome, events, applied = 0 }: Step): void => {
      if (outcome === 'busy' || applied < events) seenAt = threadMs();
    },
    pauseMs: (): number => Math.max(0, seenAt + TIMES.othersMs - threadMs()),
  };
};

/** Projects tenants, and returns those that are shown up to where they are wanted. */
const shownNow = async (live: LiveProjection, wanted: Wanted): Promise<ReadonlySet<string>> => {
  const projection = await live.current();
  if (projection === undefined) return new Set();
  const shown = await showGroup(projection, wanted);
  if (shown !== 'superseded')
    return new Set([...wanted.keys()].filter((tenantId) => shown.get(tenantId)?.outcome === 'shown'));
  live.left(projection);
  return new Set();
};

/**
 * Projects in the thread that appends. After a group of appends come its tenants: with the rest of the log, where that
 * is all there is, in one commit, and before it otherwise. Then the log is followed in slices, and once a second.
 */
export const projectingSlices = (log: LedgerLog, live: LiveProjection, options: SlicesOptions) => {
  const { onError, buildFirst } = options;
  let appendedAt = -Infinity;
  const { note, pauseMs } = othersProjecting();
  let isAtEnd = false;
  let mayBuild = true;
  /** Whether others wait for this thread. */
  const isAwaited = (): boolean => threadMs() - appendedAt < TIMES.renewMs;
  const maxEvents = (): number => (isAwaited() ? MAX_SLICE_EVENTS : MAX_BUILD_EVENTS);
  const follow = liveFollower(log, live, { maxEvents });

  /** Nobody waits for it. */
  const beginToBuild = (): void => {
    mayBuild = false;
    void buildFirst()
      .catch(onError)
      .finally(() => (mayBuild = true));
  };
  const step = async (): Promise<Step | undefined> => {
    const done = await follow();
    isAtEnd = done?.isEnd === true;
    if (done === undefined && mayBuild) beginToBuild();
    mayBuild &&= !isAtEnd;
    return done;
  };
  const failed = (error: unknown): void => {
    isAtEnd = false;
    if (codeOf(error) !== 'read_models_busy') onError(error);
  };
  const slice = async (): Promise<number> => {
    const done = await step();
    if (done === undefined || isAtEnd) return TIMES.renewMs;
    note(done);
    return pauseMs();
  };
  const { inTurn, nextIn, stop } = slicesInTurn(() => slice().catch(failed));
  const shownOf = async (wanted: Wanted): Promise<ReadonlySet<string>> => {
    const outcome = isAtEnd ? (await step())?.outcome : undefined;
    return outcome === 'busy' ? new Set() : shownNow(live, wanted);
  };
  const afterAppends = (wanted: Wanted): Promise<ReadonlySet<string>> => {
    appendedAt = threadMs();
    return inTurn(async () => {
      const shown = await shownOf(wanted).catch(failed);
      nextIn(isAtEnd ? TIMES.renewMs : pauseMs());
      return shown ?? new Set<string>();
    });
  };

  nextIn(0);
  return { afterAppends, stop };
};
