import { monotonicMs, pause } from '../../clock';
import { codeOf, type Fault } from '../../fault';
import { logFault, type Continuity, type Head } from '../event-log';
import { isLagging } from './answers';
import type { Connection } from './connection';
import { recentEvents, type RecentEvents } from './recent-events';
import type { WholeLog } from './whole-log';

/**
 * The one subscription of this process, while anybody follows. It only takes in what comes, so that no follower holds it
 * up: the server drops a subscription that lags by a few events. It is resumed after whatever way of ending, from the
 * last event that it took in.
 */
export interface Live {
  /** From now on events are taken in, until as many have parted as have joined. */
  join(): void;
  part(): void;
  readonly recent: RecentEvents;
  /** Resolves when anything may have changed, or the signal is aborted. */
  news(isThere: () => boolean, signal: AbortSignal | undefined): Promise<void>;
  /** Says once that the log cannot be followed, until something comes again. */
  tell(error: unknown): void;
  isClosed(): boolean;
  close(): void;
}

/** After so long without an event somebody looks whether there should have been one, and once more after a while. */
const QUIET_MS = 5_000;
const LOOK_AGAIN_MS = 1_000;

/** A subscription that was of use is resumed at once; one that was not, after a while that grows. */
const USEFUL_MS = 2_000;
const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 1_000;

export interface LiveParts {
  readonly connection: Connection;
  readonly log: WholeLog;
  readonly continuity: (known?: Head) => Promise<Continuity>;
  readonly onTrouble: (what: string, error: unknown) => void;
}

/** While nothing comes: is that right? A connection can die without a word, and so can a subscription alone. */
const watch = (isDeaf: () => Promise<boolean>, stop: (error: Error) => void) => {
  const look = async (): Promise<void> => {
    try {
      if (await isDeaf()) stop(new Error('The subscription fell silent while the log went on.'));
    } catch (error) {
      stop(error as Error);
    }
  };
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const sign = (): void => {
    clearTimeout(timer);
    if (!stopped) timer = setTimeout(() => void look().then(sign), QUIET_MS);
  };
  sign();
  return {
    sign,
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
};

const broken = ({ eventId, position }: Head): Fault =>
  logFault(
    'log_set_back',
    `The event ${eventId} at ${position}, the last one that was followed, is not in the event log any more.`,
  );

export const liveOf = ({ connection, log, continuity, onTrouble }: LiveParts): Live => {
  const waiting = new Set<() => void>();
  const recent = recentEvents();
  let followers = 0;
  let ending = new AbortController();
  let closed = false;
  let told = false;

  const wakeAll = (): void => {
    for (const wake of waiting) wake();
  };
  const tell = (error: unknown): void => {
    if (!told) onTrouble('The event log cannot be followed; it is tried again until it can.', error);
    told = true;
  };

  /**
   * A subscription may have come to a log that was restored from an older copy, and would go on where that has grown past
   * what was taken in before. So before anything of a new subscription is taken in, what was taken in last is looked for.
   */
  const mustGoOn = async (): Promise<void> => {
    const last = recent.last();
    if (last !== undefined && (await continuity(last)) !== 'whole') throw broken(last);
  };

  const isDeaf = (signal: AbortSignal) => async (): Promise<boolean> => {
    const head = (await log.head())?.position ?? '';
    if (head <= recent.reached()) return false;
    await pause(LOOK_AGAIN_MS, signal);
    return head > recent.reached();
  };

  /** One subscription, until it ends in whatever way. Was it of any use? */
  const subscribeOnce = async (signal: AbortSignal): Promise<boolean> => {
    const begun = monotonicMs();
    const { source, batches, confirmed } = log.subscribe(recent.reached());
    const goesOn = confirmed.then(mustGoOn);
    goesOn.catch(() => undefined);
    let isUseful = false;
    const abort = (): void => source.stop();
    // What did not answer one call may be just as deaf to this one: it moves to the new connection too.
    const stay = connection.onRenewed(abort);
    const watching = watch(isDeaf(signal), (error) => {
      isUseful = false;
      source.stop(error);
    });
    signal.addEventListener('abort', abort);
    try {
      for await (const batch of batches) {
        if (signal.aborted) break;
        if (!isUseful) await goesOn;
        watching.sign();
        isUseful = true;
        told = false;
        recent.add(batch);
        wakeAll();
      }
      return isUseful || monotonicMs() - begun > USEFUL_MS;
    } catch (error) {
      if (isUseful) return true;
      throw error;
    } finally {
      signal.removeEventListener('abort', abort);
      stay();
      watching.stop();
    }
  };

  const begin = async (signal: AbortSignal): Promise<void> => {
    const head = await log.head();
    if (signal.aborted) return;
    recent.begin(head);
    wakeAll();
  };

  /** Gives how long to wait before the next attempt. */
  const attempt = async (signal: AbortSignal, waited: number): Promise<number> => {
    const client = connection.client();
    try {
      if (!recent.isBegun()) await begin(signal);
      if (!signal.aborted && (await subscribeOnce(signal))) return 0;
    } catch (error) {
      if (signal.aborted) return 0;
      if (codeOf(error) === 'no_answer') connection.renew(client);
      if (!isLagging(error)) tell(error);
    }
    return Math.min(LONGEST_WAIT_MS, Math.max(FIRST_WAIT_MS, 2 * waited));
  };

  const pump = async (signal: AbortSignal): Promise<void> => {
    for (let wait = 0; !signal.aborted;) {
      wait = await attempt(signal, wait);
      if (wait > 0) await pause(wait, signal);
    }
  };

  return {
    recent,
    tell,
    join: () => {
      followers += 1;
      if (followers > 1 || closed) return;
      ending = new AbortController();
      recent.forget();
      void pump(ending.signal);
    },
    part: () => {
      followers -= 1;
      if (followers === 0) ending.abort();
    },
    news: (isThere, signal) =>
      new Promise((resolve) => {
        if (closed || signal?.aborted === true || isThere()) return resolve();
        const done = (): void => {
          waiting.delete(done);
          signal?.removeEventListener('abort', done);
          resolve();
        };
        waiting.add(done);
        signal?.addEventListener('abort', done);
      }),
    isClosed: () => closed,
    close: () => {
      closed = true;
      ending.abort();
      wakeAll();
    },
  };
};
