import type { Projector } from '../../projections/projector';
import type { EventLog, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { fault } from '../fault';
import {
  generationName,
  type Build,
  type Generation,
  type GenerationId,
  type Pointer,
  type ReadModels,
  type Target,
} from '../read-models/read-models';
import { barrier } from './barrier';
import { compare, type Comparison } from './compare';
import type { Consumer } from './consumer';
import { leaseOn, rebuildLease } from './lease';
import { matchesLog } from './live-generations';
import { parkedTenants, retryDue } from './parking';
import { project, runInto } from './projection-run';

export interface ReplayParts extends LedgerLog {
  readonly readModels: ReadModels;
  readonly program: string;
  readonly onError: (what: string, error: unknown) => void;
  /** Shared by those who replay at the same time, so that the log is read once. */
  readonly consumer: Consumer;
}

export interface RebuildOptions {
  /** Switch only if the new generation equals the live one. */
  readonly ifEqual: boolean;
  /** Switch although it parks a tenant that the live one does not park. */
  readonly acceptParked: boolean;
  readonly onStep: (step: RebuildStep) => void;
}

export type RebuildStep =
  | { readonly step: 'building'; readonly done: number; readonly total: number }
  | { readonly step: 'indexing' | 'comparing' | 'switching' };

export interface Rebuilt {
  readonly projection: string;
  readonly generation: string;
  readonly events: number;
  /** Undefined where there was nothing of the same version to compare with. */
  readonly comparison?: Comparison;
  readonly parked: number;
}

/** Indexes keep the thread that writes for long: those that are rebuilt together wait for each other around them. */
interface Barriers {
  readonly allBuilt: () => Promise<void>;
  readonly allIndexed: () => Promise<void>;
}

/** What the steps of one rebuild share. */
interface Rebuild extends ReplayParts, RebuildOptions {
  readonly projector: Projector;
}

const RENEW_MS = 500;

/** Nothing can be renewed while the indexes are made. Where a holder's death can be seen, nobody waits that long. */
const LEASE_MS = 120_000;

/** Writers may never stop: what is left then is projected after the switch, before anybody reads it. */
const NEARLY_ALL = 1_000;

const idOf = ({ name, version }: Projector, generation: number): GenerationId => ({
  projection: name,
  version,
  generation,
});

/** The number of the generation that a killed rebuild has left, to go on with. */
const leftByRebuild = async (readModels: ReadModels, projector: Projector): Promise<number | undefined> => {
  const { name, version } = projector;
  const all = (await readModels.generations()).filter(
    (id) => id.projection === name && id.version === version,
  );
  const pointer = await readModels.pointer(name, version);
  const last = Math.max(0, pointer?.live ?? 0, pointer?.previous ?? 0);
  for (const id of all.toSorted((a, b) => b.generation - a.generation))
    if (id.generation > last && !(await readModels.isRemoved(id))) return id.generation;
  return undefined;
};

/** What a killed rebuild has left, or a fresh one. Nobody can remove it while the lease on the rebuild is held. */
const beginBuild = async ({ readModels, log }: ReplayParts, projector: Projector): Promise<Build> => {
  const { name, version, collections } = projector;
  const left = await leftByRebuild(readModels, projector);
  const id = idOf(projector, left ?? (await readModels.nextNumber(name, version)));
  const begin = async () => readModels.build(id, collections, await log.identity());
  const found = await begin();
  if (await matchesLog(found, log)) return found;
  await readModels.drop(id);
  return begin();
};

/** A killed rebuild may have left parked tenants that can go on now: they come first. */
const projectNearlyAll = async (rebuild: Rebuild, target: Target): Promise<void> => {
  const { log, projector, consumer, onStep } = rebuild;
  for (let left = Infinity; left > NEARLY_ALL;) {
    const head = await log.head();
    if (head === undefined) return;
    const total = await log.distance(undefined, head.position);
    left = await log.distance((await target.control()).to?.position, head.position);
    const moved = (position: Position): void => {
      void log.distance(undefined, position).then(
        (done) => onStep({ step: 'building', done, total }),
        () => undefined,
      );
    };
    const run = await runInto(rebuild, projector, target, moved);
    await retryDue(run);
    await project(run, consumer.upTo(head.position));
  }
};

/** A new version is pointed at before anybody has built it: there is nothing to compare with or to go back to. */
const openBuiltLive = async (
  { readModels, log, projector }: Rebuild,
  number: number | undefined,
): Promise<Generation | undefined> => {
  if (number === undefined) return undefined;
  const live = await readModels.open(idOf(projector, number), projector.collections, await log.identity());
  return (await live.control()).to !== undefined && (await matchesLog(live, log)) ? live : undefined;
};

const compareWith = async (rebuild: Rebuild, live: Generation, rebuilt: Generation): Promise<Comparison> => {
  const { projector, consumer, onStep } = rebuild;
  onStep({ step: 'comparing' });
  const follow =
    (target: Target) =>
    async (position: Position): Promise<void> =>
      project(await runInto(rebuild, projector, target), consumer.upTo(position));
  const { to } = await rebuilt.control();
  if (to !== undefined) await follow(live)(to.position);
  return compare(projector, live, rebuilt, { follow: follow(rebuilt), onDifference: () => undefined });
};

const parkedOnlyIn = async (one: Generation, other: Generation | undefined): Promise<readonly string[]> => {
  const parked = async (generation: Generation): Promise<string[]> => {
    const ids: string[] = [];
    for await (const tenant of parkedTenants(generation)) ids.push(tenant.tenant_id);
    return ids;
  };
  const known = new Set(other === undefined ? [] : await parked(other));
  return (await parked(one)).filter((tenantId) => !known.has(tenantId));
};

/** Why it is not switched to, if it is not. */
const refusalOf = (
  { ifEqual, acceptParked, projector: { name } }: Rebuild,
  comparison: Comparison | undefined,
  onlyHere: readonly string[],
): Error | undefined => {
  if (ifEqual && comparison !== undefined && comparison.differences > 0)
    return fault(
      'rebuild_differs',
      `${name}: ${comparison.differences} documents differ from the live ones.`,
    );
  if (onlyHere.length > 0 && !acceptParked)
    return fault('rebuild_parks', `${name}: the rebuild parks ${onlyHere.slice(0, 5).join(', ')}.`);
  return undefined;
};

const switchedMeanwhile = (name: string) =>
  fault('rebuild_running', `${name} was switched by another process during the rebuild.`);

/** Everything between taking the lease and giving it back. `discard` gives it back earlier. */
const rebuildWithLease = async (
  rebuild: Rebuild,
  { allBuilt, allIndexed }: Barriers,
  discard: (id: GenerationId) => Promise<void>,
): Promise<Rebuilt> => {
  const { log, readModels, projector, onStep } = rebuild;
  const { name, version } = projector;
  const build = await beginBuild(rebuild, projector);
  await projectNearlyAll(rebuild, build);
  await allBuilt();
  onStep({ step: 'indexing' });
  const rebuilt = await build.finish();
  await allIndexed();
  await projectNearlyAll(rebuild, rebuilt);
  const pointer = await readModels.pointer(name, version);
  if (pointer?.live === rebuilt.id.generation) throw switchedMeanwhile(name);
  const live = await openBuiltLive(rebuild, pointer?.live);
  const comparison = live === undefined ? undefined : await compareWith(rebuild, live, rebuilt);
  const onlyHere = await parkedOnlyIn(rebuilt, live);
  const refused = refusalOf(rebuild, comparison, onlyHere);
  if (refused !== undefined) {
    await discard(rebuilt.id);
    throw refused;
  }
  onStep({ step: 'switching' });
  await projectNearlyAll(rebuild, rebuilt);
  const previous = live === undefined ? {} : { previous: live.id.generation };
  const next: Pointer = { live: rebuilt.id.generation, ...previous };
  if (!(await readModels.point(name, version, next, pointer))) throw switchedMeanwhile(name);
  const { to } = await rebuilt.control();
  return {
    projection: name,
    generation: generationName(rebuilt.id),
    events: to === undefined ? 0 : await log.distance(undefined, to.position),
    ...(comparison === undefined ? {} : { comparison }),
    parked: onlyHere.length,
  };
};

/**
 * Builds a fresh generation beside the live one, compares them, and switches to it. Killed at any moment, the live one is
 * untouched. What it does is seen by everybody as the note of its lease.
 */
const rebuild = async (
  parts: ReplayParts,
  projector: Projector,
  options: RebuildOptions,
  barriers: Barriers,
): Promise<Rebuilt> => {
  const { readModels, onError } = parts;
  const { name } = projector;
  const lease = leaseOn(readModels, rebuildLease(name), onError, LEASE_MS);
  let note = '';
  if (!(await lease.hold(note)))
    throw fault(
      'rebuild_running',
      `${name} is being rebuilt by ${(await lease.holder()) ?? 'another process'}.`,
    );
  const renewing = setInterval(() => void lease.hold(note), RENEW_MS);
  const release = async (): Promise<void> => {
    clearInterval(renewing);
    await lease.release();
  };
  /** Without the lease, so that it stays if another rebuild goes on with it, or has switched to it. */
  const discard = async (id: GenerationId): Promise<void> => {
    await release();
    if (await readModels.markRemoved(id, { held: rebuildLease(name), live: true })) await readModels.drop(id);
  };
  const onStep = (step: RebuildStep): void => {
    note = JSON.stringify(step);
    options.onStep(step);
  };
  try {
    return await rebuildWithLease({ ...parts, ...options, projector, onStep }, barriers, discard);
  } finally {
    await release();
  }
};

/** Rebuilds several at the same time: the log is read once for all of them. One that fails does not stop the others. */
export const rebuildTogether = (
  parts: ReplayParts,
  projectors: readonly Projector[],
  optionsFor: (projector: Projector) => RebuildOptions,
): Promise<PromiseSettledResult<Rebuilt>[]> => {
  const [built, indexed] = [barrier(projectors.length), barrier(projectors.length)];
  const one = async (projector: Projector): Promise<Rebuilt> => {
    const [allBuilt, allIndexed] = [built(), indexed()];
    try {
      return await rebuild(parts, projector, optionsFor(projector), {
        allBuilt: allBuilt.arrive,
        allIndexed: allIndexed.arrive,
      });
    } finally {
      allBuilt.leave();
      allIndexed.leave();
    }
  };
  return Promise.allSettled(projectors.map(one));
};

/** What a rebuild would do, as far as it can be known before. */
export interface RebuildPlan {
  readonly projection: string;
  readonly version: number;
  /** Events to read. */
  readonly events: number;
  /** A killed rebuild that it goes on with. */
  readonly goes_on_with: string | null;
  /** What it is compared with, and what stays to roll back to. */
  readonly live: string | null;
  /** Who would have to finish first. */
  readonly rebuilt_by: string | null;
}

export const planRebuild = async (
  { readModels, log }: { readModels: ReadModels; log: EventLog },
  projector: Projector,
): Promise<RebuildPlan> => {
  const { name, version } = projector;
  const left = await leftByRebuild(readModels, projector);
  const pointer = await readModels.pointer(name, version);
  const begun = left === undefined ? undefined : await readModels.peek(idOf(projector, left));
  const after = (await begun?.control())?.to?.position;
  const head = await log.head();
  return {
    projection: name,
    version,
    events: head === undefined ? 0 : await log.distance(after, head.position),
    goes_on_with: left === undefined ? null : generationName(idOf(projector, left)),
    live: pointer === undefined ? null : generationName(idOf(projector, pointer.live)),
    rebuilt_by: (await readModels.leaseHolder(rebuildLease(name))) ?? null,
  };
};

/** Back to the generation before the last switch. */
export const rollback = async (readModels: ReadModels, projector: Projector): Promise<string> => {
  const { name, version } = projector;
  const pointer = await readModels.pointer(name, version);
  if (pointer?.previous === undefined)
    throw fault('nothing_to_roll_back_to', `${name} has no previous generation.`);
  const back = { live: pointer.previous, previous: pointer.live };
  if (await readModels.isRemoved(idOf(projector, back.live)))
    throw fault('nothing_to_roll_back_to', `The previous generation of ${name} is being removed.`);
  if (!(await readModels.point(name, version, back, pointer))) throw switchedMeanwhile(name);
  return generationName(idOf(projector, back.live));
};
