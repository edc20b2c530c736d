import { monotonicMs, orUndefined, pause } from '../async/clock';
import { singleFlight } from '../async/concurrency';
import type { Position } from '../event-log/event-log';
import { fault } from '../fault';
import type { LiveSet, ReadModels } from '../read-models/read-models';
import { TIMES } from '../times';
import type { Shown } from './project';

/** What one process knows about the live set. */
export interface KnownLiveSet {
  /** One look at the control state, shared only with requests that arrived before it was sent. */
  read(): Promise<LiveSet>;
  /** Whether the live set shows a position: true once somebody has seen that, false if nobody has in time. */
  reached(position: Position, withinMs: number): Promise<boolean>;
  /** Whether a tenant may be parked, as far as is known since the position that was shown last. */
  mayPark(): boolean;
  /** This process has projected up to here, into a set without a successor. */
  moved(shown: Shown): void;
}

interface Waiter {
  readonly position: Position;
  readonly since: number;
  readonly done: (isShown: boolean) => void;
}

export const knownLiveSet = (readModels: ReadModels): KnownLiveSet => {
  const waiting = new Set<Waiter>();
  let [shown, parked] = ['', 0];
  let isLooking = false;
  /** Of those who asked, the one whose position is not shown for the longest time. */
  let oldest: Waiter | undefined;

  const moved: KnownLiveSet['moved'] = (known) => {
    if (known.position >= shown) [shown, parked] = [known.position, known.parked];
    for (const waiter of waiting) if (waiter.position <= shown) waiter.done(true);
    if (oldest !== undefined && oldest.position <= shown) [oldest] = waiting;
  };

  const { fresh: read } = singleFlight(async () => {
    const live = await readModels.live();
    if (live === undefined)
      throw fault('read_models_unavailable', 'The read models have not been built yet.');
    moved({ position: live.control.to?.position ?? '', parked: live.control.parked });
    return live;
  });

  /** One look for all who wait; none while nobody does. */
  const lookWhileAwaited = async (): Promise<void> => {
    if (isLooking) return;
    isLooking = true;
    for (await pause(TIMES.shownLookMs); waiting.size > 0; await pause(TIMES.shownLookMs))
      await read().catch(() => undefined);
    isLooking = false;
  };

  const wait = (position: Position, withinMs: number): Promise<boolean> =>
    new Promise((resolve) => {
      const done = (isShown: boolean): void => {
        clearTimeout(timer);
        waiting.delete(waiter);
        resolve(isShown);
      };
      const timer = setTimeout(() => done(false), withinMs);
      const waiter: Waiter = { position, since: monotonicMs(), done };
      waiting.add(waiter);
      oldest ??= waiter;
      void lookWhileAwaited();
    });

  return {
    read,
    moved,
    mayPark: () => parked > 0,
    reached: async (position, withinMs) => {
      if (position <= shown) return true;
      if (oldest === undefined || monotonicMs() - oldest.since <= TIMES.tellMs)
        return wait(position, withinMs);
      await orUndefined(read(), withinMs);
      return position <= shown;
    },
  };
};
