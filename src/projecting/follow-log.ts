import { pause } from '../async/clock';
import type { LoggedEvent } from '../event-log/event-log';
import { mustStillHold } from '../event-log/log-watch';
import type { Lease, LiveSet } from '../read-models/read-models';
import { TIMES } from '../times';
import type { ParkedTenant } from './fold-batch';
import { retryDue } from './parked-tenants';
import { projection, readFolding, readingInPieces, type ReplayDependencies, type Step } from './project';

export interface FollowingDependencies extends ReplayDependencies {
  readonly lease: Lease;
  /** How long a commit may take while somebody waits. */
  readonly sliceMs: () => number | undefined;
  readonly onStep: (step: Pick<Step, 'shown' | 'parked'>) => void;
  /** Called with failures that are retried. With `log_set_back`, the process should end. */
  readonly onError: (error: unknown) => void;
  /** Makes the first set of this version of the program. */
  readonly buildFirst: () => Promise<unknown>;
}

/** Follows the log until the set has a successor or the signal is aborted. */
const followInto = async (
  dependencies: FollowingDependencies,
  { set, control }: LiveSet,
  signal: AbortSignal,
): Promise<void> => {
  const { log, streams, onStep, sliceMs } = dependencies;
  await mustStillHold(log, control.to);
  const folding = await readFolding(dependencies);
  const readAfter = readingInPieces((after) => log.readAll({ after }));
  const { toEnd } = projection(set, readAfter, folding, { sliceMs, between: onStep });
  const onParked = (tenant: ParkedTenant): void => onStep({ parked: [tenant] });
  await retryDue({ log, streams, set, folding, onParked, between: toEnd });

  let delivered: readonly LoggedEvent[] = [];
  const readDelivered = readingInPieces((after = '') => [
    delivered.filter(({ position }) => position > after),
  ]);
  const following = projection(set, readDelivered, folding, { sliceMs, between: onStep });
  const { to } = await set.control();
  for await (delivered of log.readAll({ after: to?.position, follow: true, signal }))
    if ((await following.toEnd()) === 'superseded') return;
};

/** Projects while this process holds the lease. */
const projectWhileHeld = async (dependencies: FollowingDependencies, ending: AbortSignal): Promise<void> => {
  const { lease, readModels, buildFirst, onError } = dependencies;
  const taken = new AbortController();
  const renew = (): Promise<void> =>
    lease.hold().then((isHeld) => (isHeld ? undefined : taken.abort()), onError);
  const renewing = setInterval(() => void renew(), TIMES.renewMs);
  const signal = AbortSignal.any([ending, taken.signal]);
  try {
    while (!signal.aborted) {
      const live = await readModels.live();
      await (live === undefined ? buildFirst() : followInto(dependencies, live, signal));
    }
  } finally {
    clearInterval(renewing);
  }
};

/**
 * Follows the log in the process that holds the lease, where processes do not project what they append. Returns how to
 * stop.
 */
export const startFollowing = (dependencies: FollowingDependencies): (() => Promise<void>) => {
  const { lease, onError } = dependencies;
  const ending = new AbortController();
  const run = async (): Promise<void> => {
    for (; !ending.signal.aborted; await pause(TIMES.retryMs, ending.signal))
      try {
        if (await lease.hold()) await projectWhileHeld(dependencies, ending.signal);
      } catch (error) {
        if (!ending.signal.aborted) onError(error);
      }
    await lease.release().catch(onError);
  };
  const running = run();
  return () => {
    ending.abort();
    return running;
  };
};
