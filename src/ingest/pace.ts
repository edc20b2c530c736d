import { monotonicMs } from '../clock';
import type { Position } from '../event-log/event-log';

/** Keeps the live read models close behind: what is appended but not shown yet is never much, by time. */
export interface Pace {
  /** This many events have been appended, up to this position. Waits until it is time to append more. */
  appended(position: Position, events: number): Promise<void>;
  /** Waits for the rest. False: the read models do not show everything yet. */
  finished(): Promise<boolean>;
}

type Reached = (position: Position, withinMs: number) => Promise<boolean>;

/** What is appended should be shown within this time. Events ahead are allowed by how well that goes. */
const SHOWN_MS = 500;
const MIN_AHEAD = 500;
const MAX_AHEAD = 10_000;

/** Whoever projects may be away; facts are taken all the same. */
const SHOWN_TIMEOUT_MS = 30_000;

export const pace = (reached: Reached, now: () => number = monotonicMs): Pace => {
  const waiting: { readonly position: Position; readonly events: number; readonly at: number }[] = [];
  let ahead = 0;
  let allowed = MIN_AHEAD;

  /** Waits for the oldest. */
  const shown = async (): Promise<boolean> => {
    const [oldest] = waiting.splice(0, 1);
    if (oldest === undefined) return true;
    const isShown = await reached(oldest.position, SHOWN_TIMEOUT_MS);
    ahead -= oldest.events;
    const next = now() - oldest.at > SHOWN_MS ? allowed / 2 : allowed + oldest.events / 4;
    allowed = Math.min(MAX_AHEAD, Math.max(MIN_AHEAD, next));
    return isShown;
  };

  return {
    appended: async (position, events) => {
      waiting.push({ position, events, at: now() });
      ahead += events;
      while (ahead > allowed && waiting.length > 0) await shown();
    },
    finished: async () => {
      let all = true;
      while (waiting.length > 0) all = await shown();
      return all;
    },
  };
};
