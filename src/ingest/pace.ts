import { monotonicMs } from '../async/clock';
import type { Position } from '../event-log/event-log';

/** The target lag. The number of events allowed ahead of the read models adapts to it. */
const TARGET_MS = 500;
const MIN_AHEAD = 500;
const MAX_AHEAD = 10_000;

/** If no process projects, facts are still accepted after this time. */
const MAX_WAIT_MS = 30_000;

/** Backpressure: slows the appends down so that the live read models never lag far behind, measured in time. */
export const pace = (
  reached: (position: Position, withinMs: number) => Promise<boolean>,
  now: () => number = monotonicMs,
) => {
  const waiting: { readonly position: Position; readonly events: number; readonly at: number }[] = [];
  let ahead = 0;
  let allowed = MIN_AHEAD;

  /** Waits until the oldest append is in the read models, and adapts `allowed`. */
  const awaitOldest = async (): Promise<boolean> => {
    const [oldest] = waiting.splice(0, 1);
    if (oldest === undefined) return true;
    const isShown = await reached(oldest.position, MAX_WAIT_MS);
    ahead -= oldest.events;
    const next = now() - oldest.at > TARGET_MS ? allowed / 2 : allowed + oldest.events / 4;
    allowed = Math.min(MAX_AHEAD, Math.max(MIN_AHEAD, next));
    return isShown;
  };

  return {
    /** Reports events appended up to this position. Resolves once more may be appended. */
    appended: async (position: Position, events: number): Promise<void> => {
      waiting.push({ position, events, at: now() });
      ahead += events;
      while (ahead > allowed && waiting.length > 0) await awaitOldest();
    },
    /** Waits for the read models to catch up. False: they have not yet. */
    finished: async (): Promise<boolean> => {
      let isShown = true;
      while (waiting.length > 0) isShown = await awaitOldest();
      return isShown;
    },
  };
};
