import { monotonicMs, pause, yieldToEventLoop } from '../async/clock';
import type { Position } from '../event-log/event-log';
import { liveFollower } from '../projecting/follow-log';
import { MAX_SLICE_EVENTS, type ReplayDependencies } from '../projecting/project-tenants';
import { buildFirst } from '../projecting/rebuild';
import { liveProjection, showing, type Show } from '../projecting/show-tenants';
import { TIMES } from '../times';

/** For commands, which project here. */
export interface CatchingUp {
  /** Whether a tenant is shown up to a position in time. */
  readonly show: Show;
  /**
   * Follows the log up to a position (empty: its beginning) or, where another process holds the lease, waits for that.
   * False: the read models are not there in time, or were never built.
   */
  readonly catchUp: (
    position: Position,
    withinMs: number,
    onMoved?: (done: Position) => void,
  ) => Promise<boolean>;
}

/** A command builds the read models of a log that has no more events than this, instead of only appending to it. */
const FEW_EVENTS = 10_000;

/** Makes the first set of this version, unless that would take long. */
const buildIfSmall = async (replay: ReplayDependencies, position: Position): Promise<void> => {
  const { log, readModels } = replay;
  if ((await readModels.live()) !== undefined) return;
  if (position !== '' && (await log.distance(undefined, position)) > FEW_EVENTS) return;
  await buildFirst(replay);
};

export const catchingUp = (replay: ReplayDependencies, onError: (error: unknown) => void): CatchingUp => {
  const live = liveProjection(replay);
  const showHere = showing(live, { onError });
  const follow = liveFollower(replay, live, { maxEvents: () => MAX_SLICE_EVENTS });
  const { lease, live: findLive } = replay.readModels;

  const followTo = async (position: Position, end: number, onMoved: (done: Position) => void) => {
    for (;;) {
      const step = await follow(position === '' ? undefined : position);
      if (step === undefined) return false;
      if (step.to !== undefined) onMoved(step.to);
      if (step.outcome === 'at_end' || (step.to ?? '') >= position) return true;
      // A suspended process may keep the lock of the set for as long as it likes.
      if (step.outcome === 'busy' || monotonicMs() >= end) return false;
      await yieldToEventLoop();
    }
  };

  return {
    show: async (tenantId, position, withinMs) => {
      await buildIfSmall(replay, position);
      return showHere(tenantId, position, withinMs);
    },
    catchUp: async (position, withinMs, onMoved = () => undefined) => {
      const end = monotonicMs() + withinMs;
      if (lease === undefined) {
        await buildIfSmall(replay, position);
        return followTo(position, end, onMoved);
      }
      while (!(await lease.hold())) {
        const to = (await findLive())?.control.to?.position ?? '';
        onMoved(to);
        if (to >= position) return true;
        if (monotonicMs() >= end) return false;
        await pause(TIMES.projectorLookMs);
      }
      try {
        await buildIfSmall(replay, position);
        return await followTo(position, end, onMoved);
      } finally {
        await lease.release();
      }
    },
  };
};
