import { monotonicMs, yieldToEventLoop } from '../async/clock';
import type { Position } from '../event-log/event-log';
import type { KnownLiveSet } from '../projecting/live-set';
import { liveProjection, type ReplayDependencies } from '../projecting/project';
import { buildFirst } from '../projecting/rebuild';
import { TIMES } from '../times';

/**
 * For commands: projects up to a position (empty: the beginning of the log) itself or, where another process holds the
 * lease, waits for it. False: the read models are not there in time, or were never built.
 */
export type CatchUp = (
  position: Position,
  withinMs: number,
  onMoved?: (done: Position) => void,
) => Promise<boolean>;

/** A command builds the read models of a log that has no more events than this, instead of only appending to it. */
const FEW_EVENTS = 10_000;

/** Makes the first set of this version, unless that would take long. */
const buildIfSmall = async (replay: ReplayDependencies, position: Position): Promise<void> => {
  const { log, readModels } = replay;
  if ((await readModels.live()) !== undefined) return;
  if (position !== '' && (await log.distance(undefined, position)) > FEW_EVENTS) return;
  await buildFirst(replay);
};

/** Projects into the live set in slices. A process that only waits for its own events finds them in any of them. */
const projectingHere = (replay: ReplayDependencies, live: KnownLiveSet) => {
  const projectLive = liveProjection(replay, { sliceMs: () => TIMES.sliceMs });
  return async (position: Position, end: number, onMoved: (done: Position) => void): Promise<boolean> => {
    for (;;) {
      const step = await projectLive(position);
      if (step === undefined) return false;
      const { outcome, shown } = step;
      if (shown !== undefined) {
        live.moved(shown);
        onMoved(shown.position);
      }
      if (outcome === 'at_end' || (shown?.position ?? '') >= position) return true;
      // A suspended process may keep the lock of the set for as long as it likes.
      if (outcome === 'busy' || monotonicMs() >= end) return false;
      await yieldToEventLoop();
    }
  };
};

export const catchingUp = (replay: ReplayDependencies, live: KnownLiveSet): CatchUp => {
  const projectTo = projectingHere(replay, live);
  const { lease } = replay.readModels;
  return async (position, withinMs, onMoved = () => undefined) => {
    const end = monotonicMs() + withinMs;
    if (lease === undefined) {
      await buildIfSmall(replay, position);
      return projectTo(position, end, onMoved);
    }
    for (;;) {
      if (await live.reached(position, TIMES.projectorLookMs)) return true;
      if (await lease.hold()) break;
      if (monotonicMs() >= end) return false;
    }
    try {
      await buildIfSmall(replay, position);
      return await projectTo(position, end, onMoved);
    } finally {
      await lease.release();
    }
  };
};
