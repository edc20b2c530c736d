import { pause, yieldToEventLoop } from '../async/clock';
import type { Position } from '../event-log/event-log';
import { mustStillHold } from '../event-log/log-watch';
import { codeOf, fault, moreOf } from '../fault';
import { removeLeftovers, type LiveSet, type ReadModelSet } from '../read-models/read-models';
import { TIMES } from '../times';
import { compare, type Comparison, type Difference } from './compare';
import { logFollower, readingInPieces } from './follow-log';
import { parkedTenants, retryDue } from './parked-tenants';
import { tenantProjection, type ReplayDependencies, type TenantProjection } from './project-tenants';

export interface ReplayOptions {
  /** Undefined: the whole log. */
  readonly read?: Parameters<typeof readingInPieces>[0];
  readonly onEvents?: (events: number) => void;
}

/**
 * Follows the log into a set, in large commits, up to a position; first retries parked tenants whose events were set
 * aside since. Rejects with `read_model_set_removed` if the set has a successor or is gone.
 */
export const replayInto = (
  dependencies: ReplayDependencies,
  projection: TenantProjection,
  options: ReplayOptions = {},
) => {
  const { log, abort } = dependencies;
  const { read = (after) => log.readAll({ after }), onEvents = () => undefined } = options;
  const follow = logFollower(dependencies, readingInPieces(read));
  return async (upTo: Position): Promise<void> => {
    await retryDue(projection);
    for (;;) {
      const { outcome, events } = await follow(projection, upTo);
      if (outcome === 'at_end') return;
      if (outcome === 'superseded')
        throw fault('read_model_set_removed', `The set ${projection.set.id} has a successor or was removed.`);
      if (events > 0) onEvents(events);
      await yieldToEventLoop();
      abort?.throwIfAborted();
    }
  };
};

export interface RebuildOptions {
  /** Switch although the new set differs from the live one, or parks a tenant that the live one does not park. */
  readonly acceptDifferences: boolean;
  readonly onStep: (step: RebuildStep) => void;
  readonly onDifference: (difference: Difference) => void;
}

export type RebuildStep =
  | { readonly step: 'building'; readonly done: number; readonly total: number }
  | { readonly step: 'indexing' | 'comparing' | 'switching' };

export interface Rebuilt {
  readonly set: ReadModelSet;
  /** How many events it shows. */
  readonly events: number;
  /** Undefined: there was nothing of this version and of this log to compare with, or it was damaged. */
  readonly comparison: Comparison | undefined;
  /** How many tenants it parks that were not parked before. */
  readonly parked: number;
}

interface Build extends ReplayDependencies, RebuildOptions {
  readonly built: TenantProjection;
  readonly replay: ReturnType<typeof replayInto>;
}

const SWITCH_ATTEMPTS = 20;

const followToHead = async ({ log, replay }: Build): Promise<void> => {
  const head = await log.head();
  if (head !== undefined) await replay(head.position);
};

/** The log must still hold the last event that was followed, and the last one of any tenant. */
export const mustHoldEventsOf = async (
  log: ReplayDependencies['log'],
  { set, control }: LiveSet,
): Promise<void> => {
  await mustStillHold(log, control.to);
  await mustStillHold(log, await set.furthest());
};

/** Whether the log still holds what a set was made from. */
const isOfLog = async ({ log }: Build, live: LiveSet): Promise<boolean> => {
  if (live.control.log !== (await log.identity())) return false;
  try {
    await mustHoldEventsOf(log, live);
    return true;
  } catch (error) {
    if (codeOf(error) !== 'log_set_back') throw error;
    return false;
  }
};

const parkedOnlyIn = async (built: ReadModelSet, live: ReadModelSet): Promise<readonly string[]> => {
  const found = new Set<string>();
  for await (const { tenant_id } of parkedTenants(built)) found.add(tenant_id);
  for await (const { tenant_id } of parkedTenants(live)) found.delete(tenant_id);
  return [...found];
};

/** One that is damaged cannot be compared with. */
const compareWith = async (build: Build, live: ReadModelSet): Promise<Comparison | undefined> => {
  const { projector, built, onDifference, abort } = build;
  try {
    return await compare(projector, tenantProjection(build, live), built, { onDifference, abort });
  } catch (error) {
    if (moreOf(error)['isDamaged'] !== true) throw error;
    return undefined;
  }
};

const refusal = (differences: number, parked: readonly string[]): Error => {
  const found = [
    ...(differences === 0 ? [] : [`${differences} document(s) differ from the live read models`]),
    ...(parked.length === 0 ? [] : [`the rebuild parks ${parked.slice(0, 5).join(', ')}`]),
  ];
  return fault(
    'rebuild_differs',
    `${found.join(', and ')}. The live read models were kept. To switch all the same: tenant-ledger projections rebuild --accept-differences`,
  );
};

/**
 * Follows to the head and switches, again and again while the former set is further or the outcome is unknown. `check`
 * refuses the switch by rejecting.
 */
const switchTo = async (
  build: Build,
  former: LiveSet | undefined,
  evenIfBehind: boolean,
  check: () => Promise<void>,
): Promise<void> => {
  const { readModels, built, replay, abort } = build;
  const follow = async (furthest: Position | undefined): Promise<void> => {
    if (furthest !== undefined && !evenIfBehind) await replay(furthest);
    await check();
  };
  let left = former;
  for (let attempt = 1; ; attempt += 1) {
    await followToHead(build);
    try {
      if (await readModels.succeed(built.set, left?.set, { evenIfBehind, follow })) return;
    } catch (error) {
      if (codeOf(error) === 'rebuild_differs' || attempt === SWITCH_ATTEMPTS || abort?.aborted === true)
        throw error;
      await pause(TIMES.retryMs, abort);
      continue;
    }
    await built.set.control();
    const live = await readModels.live();
    // Damage was found in it, or its file is gone.
    if (live === undefined) left = undefined;
    else if (live.set.id !== left?.set.id)
      throw fault('rebuild_running', 'Another process switched to other read models during the rebuild.');
  }
};

const fillAndSwitch = async (build: Build): Promise<Rebuilt> => {
  const { log, readModels, built, acceptDifferences, onStep } = build;
  await followToHead(build);
  onStep({ step: 'indexing' });
  await built.set.finish();
  await followToHead(build);
  const live = await readModels.live();
  const isComparable = live !== undefined && (await isOfLog(build, live));
  onStep({ step: 'comparing' });
  const comparison = isComparable ? await compareWith(build, live.set) : undefined;
  const differences = comparison?.differences ?? 0;
  let parked: readonly string[] = [];
  const check = async (): Promise<void> => {
    if (comparison === undefined || live === undefined) return;
    parked = await parkedOnlyIn(built.set, live.set);
    if (!acceptDifferences && differences + parked.length > 0) throw refusal(differences, parked);
  };
  await check();
  onStep({ step: 'switching' });
  await switchTo(build, live, !isComparable, check);
  const control = await built.set.control();
  const events = control.to === undefined ? 0 : await log.distance(undefined, control.to.position);
  const newlyParked = comparison === undefined ? control.marks : parked.length;
  return { set: built.set, events, comparison, parked: newlyParked };
};

/**
 * Builds a new set next to the live one, compares them, and switches to it. If killed at any moment, the live one is
 * untouched.
 */
export const rebuild = async (
  dependencies: ReplayDependencies,
  options: RebuildOptions,
): Promise<Rebuilt> => {
  const { log, readModels } = dependencies;
  await removeLeftovers(readModels);
  const head = await log.head();
  const total = head === undefined ? 0 : await log.distance(undefined, head.position);
  const created = await readModels.create(await log.identity());
  const built = tenantProjection(dependencies, created, { loadsNew: true });
  const renewing = setInterval(() => void created.renew().catch(() => false), TIMES.renewMs);
  let done = 0;
  const onEvents = (events: number): void => {
    done += events;
    options.onStep({ step: 'building', done, total: Math.max(done, total) });
  };
  try {
    const replay = replayInto(dependencies, built, { onEvents });
    return await fillAndSwitch({ ...dependencies, ...options, built, replay });
  } catch (error) {
    // The store refuses this if the set has become live, and for a minute after it was renewed.
    await readModels.remove(created.id).catch(() => false);
    throw error;
  } finally {
    clearInterval(renewing);
  }
};

/** Makes the first set of a version, unless another process does so at the same time: then that one is live. */
export const buildFirst = async (
  dependencies: ReplayDependencies,
  onStep: RebuildOptions['onStep'] = () => undefined,
): Promise<void> => {
  try {
    await rebuild(dependencies, { acceptDifferences: true, onStep, onDifference: () => undefined });
  } catch (error) {
    if (codeOf(error) !== 'rebuild_running') throw error;
  }
};
