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
import { damageIn, isDamage, rebuildCommand } from '../read-models/damage';
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
  /** Shared by concurrent replays, so that the log is read once. */
  readonly consumer: Consumer;
}

export interface RebuildOptions {
  /** Switch only if the new generation equals the live one. */
  readonly ifEqual: boolean;
  /** Switch even if it parks a tenant that the live one does not park. */
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
  /** Undefined: there was nothing of the same version to compare with. */
  readonly comparison?: Comparison;
  readonly parked: number;
}

/**
 * Building indexes blocks the writer thread for long, so concurrent rebuilds wait for each other before and after it.
 */
interface Barriers {
  readonly allBuilt: () => Promise<void>;
  readonly allIndexed: () => Promise<void>;
}

interface Rebuild extends ReplayParts, RebuildOptions {
  readonly projector: Projector;
}

const RENEW_MS = 500;

/** Long, because it cannot be renewed while indexes are built. Adapters that detect a dead holder free it earlier. */
const LEASE_MS = 120_000;

/** Writes may never stop, so the last events may be projected after the switch, before the generation is read. */
const MAX_BEHIND = 1_000;

const idOf = ({ name, version }: Projector, generation: number): GenerationId => ({
  projection: name,
  version,
  generation,
});

/** Undefined: it is damaged. */
const unlessDamaged = <T>(work: Promise<T>): Promise<T | undefined> =>
  work.catch((error: unknown) => {
    if (!isDamage(error)) throw error;
    return undefined;
  });

/** The number of a generation that a killed rebuild left behind, to resume. */
const unfinishedBuild = async (readModels: ReadModels, projector: Projector): Promise<number | undefined> => {
  const { name, version } = projector;
  const all = (await readModels.generations()).filter(
    (id) => id.projection === name && id.version === version,
  );
  const pointer = await readModels.pointer(name, version);
  const last = Math.max(0, pointer?.live ?? 0, pointer?.previous ?? 0);
  for (const id of all.toSorted((a, b) => b.generation - a.generation)) {
    const isUsable = !(await readModels.isRemoved(id)) && (await readModels.damageOf(id)) === undefined;
    if (id.generation > last && isUsable) return id.generation;
  }
  return undefined;
};

/** Resumes the build of a killed rebuild, or starts one. The rebuild's lease protects it from removal. */
const beginBuild = async ({ readModels, log }: ReplayParts, projector: Projector): Promise<Build> => {
  const { name, version, collections } = projector;
  const begin = async (number: number) =>
    readModels.build(idOf(projector, number), collections, await log.identity());
  const begun = async (): Promise<Build> => begin(await readModels.nextNumber(name, version));
  const left = await unfinishedBuild(readModels, projector);
  if (left === undefined) return begun();
  const found = await unlessDamaged(begin(left));
  if (found === undefined) return begun();
  if (await matchesLog(found, log)) return found;
  await readModels.drop(found.id);
  return begin(left);
};

/** Retries parked tenants first: a killed rebuild may have left some that can resume now. */
const projectNearlyAll = async (rebuild: Rebuild, target: Target): Promise<void> => {
  const { log, projector, consumer, onStep } = rebuild;
  for (let left = Infinity; left > MAX_BEHIND;) {
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

/** A new version's pointer exists before anything is built: then there is nothing to compare with or roll back to. */
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

interface Compared {
  readonly live: Generation;
  readonly comparison: Comparison;
}

/** Undefined: there is no live generation, or it is damaged, which is the same to a rebuild. */
const comparedWithLive = async (
  rebuild: Rebuild,
  number: number | undefined,
  rebuilt: Generation,
): Promise<Compared | undefined> => {
  try {
    const live = await openBuiltLive(rebuild, number);
    return live === undefined ? undefined : { live, comparison: await compareWith(rebuild, live, rebuilt) };
  } catch (error) {
    if (damageIn(error)?.generation !== generationName(idOf(rebuild.projector, number ?? 0))) throw error;
    rebuild.onError(
      `${rebuild.projector.name}: the live generation cannot be read, so the new one was not compared with it.`,
      error,
    );
    return undefined;
  }
};

const parkedOnlyIn = async (
  rebuilt: Generation,
  live: Generation | undefined,
): Promise<readonly string[]> => {
  const parked = async (generation: Generation): Promise<string[]> => {
    const ids: string[] = [];
    for await (const tenant of parkedTenants(generation)) ids.push(tenant.tenant_id);
    return ids;
  };
  const known = new Set(live === undefined ? [] : await parked(live));
  return (await parked(rebuilt)).filter((tenantId) => !known.has(tenantId));
};

/** Why not to switch to the rebuild, if there is a reason. */
const refusalOf = (
  { ifEqual, acceptParked, projector: { name } }: Rebuild,
  comparison: Comparison | undefined,
  newlyParked: readonly string[],
): Error | undefined => {
  if (ifEqual && comparison !== undefined && comparison.differences > 0)
    return fault(
      'rebuild_differs',
      `${name}: ${comparison.differences} documents differ from the live ones.`,
    );
  if (newlyParked.length > 0 && !acceptParked)
    return fault('rebuild_parks', `${name}: the rebuild parks ${newlyParked.slice(0, 5).join(', ')}.`);
  return undefined;
};

const switchedByOther = (name: string) =>
  fault('rebuild_running', `${name} was switched by another process during the rebuild.`);

/** Runs while the lease is held. `discard` releases it early. */
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
  if (pointer?.live === rebuilt.id.generation) throw switchedByOther(name);
  const { live, comparison } = (await comparedWithLive(rebuild, pointer?.live, rebuilt)) ?? {};
  const newlyParked = await parkedOnlyIn(rebuilt, live);
  const refused = refusalOf(rebuild, comparison, newlyParked);
  if (refused !== undefined) {
    await discard(rebuilt.id);
    throw refused;
  }
  onStep({ step: 'switching' });
  await projectNearlyAll(rebuild, rebuilt);
  const previous = live === undefined ? {} : { previous: live.id.generation };
  const next: Pointer = { live: rebuilt.id.generation, ...previous };
  if (!(await readModels.point(name, version, next, pointer))) throw switchedByOther(name);
  const { to } = await rebuilt.control();
  return {
    projection: name,
    generation: generationName(rebuilt.id),
    events: to === undefined ? 0 : await log.distance(undefined, to.position),
    ...(comparison === undefined ? {} : { comparison }),
    parked: newlyParked.length,
  };
};

/**
 * Builds a new generation next to the live one, compares them, and switches to it. If killed at any moment, the live one
 * is untouched. The note on the lease shows its progress to everyone.
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
  /** Releases the lease first, so that the generation stays if another rebuild resumes it or has switched to it. */
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

/** Rebuilds several at the same time, reading the log once for all. A failure of one does not stop the others. */
export const rebuildTogether = (
  parts: ReplayParts,
  projectors: readonly Projector[],
  optionsFor: (projector: Projector) => RebuildOptions,
): Promise<PromiseSettledResult<Rebuilt>[]> => {
  const [built, indexed] = [barrier(projectors.length), barrier(projectors.length)];
  const rebuildOne = async (projector: Projector): Promise<Rebuilt> => {
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
  return Promise.allSettled(projectors.map(rebuildOne));
};

/** What a rebuild would do, as far as is known in advance. */
export interface RebuildPlan {
  readonly projection: string;
  readonly version: number;
  /** Events to read. */
  readonly events: number;
  /** The generation of a killed rebuild that it would resume. */
  readonly goes_on_with: string | null;
  /** The generation that it would compare with, and keep for a rollback. */
  readonly live: string | null;
  /** The process whose rebuild would have to finish first. */
  readonly rebuilt_by: string | null;
}

export const planRebuild = async (
  { readModels, log }: { readModels: ReadModels; log: EventLog },
  projector: Projector,
): Promise<RebuildPlan> => {
  const { name, version } = projector;
  const left = await unfinishedBuild(readModels, projector);
  const pointer = await readModels.pointer(name, version);
  const unfinished = left === undefined ? undefined : await readModels.peek(idOf(projector, left));
  const control = unfinished === undefined ? undefined : await unlessDamaged(unfinished.control());
  const after = control?.to?.position;
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

const isReadable = async (readModels: ReadModels, id: GenerationId): Promise<boolean> => {
  const generation = await readModels.peek(id);
  if (generation === undefined || (await readModels.damageOf(id)) !== undefined) return false;
  return (await unlessDamaged(generation.control())) !== undefined;
};

/** Switches back to the generation from before the last switch. */
export const rollback = async (readModels: ReadModels, projector: Projector): Promise<string> => {
  const { name, version } = projector;
  const pointer = await readModels.pointer(name, version);
  if (pointer?.previous === undefined)
    throw fault('nothing_to_roll_back_to', `${name} has no previous generation.`);
  const back = { live: pointer.previous, previous: pointer.live };
  if (await readModels.isRemoved(idOf(projector, back.live)))
    throw fault('nothing_to_roll_back_to', `The previous generation of ${name} is being removed.`);
  if (!(await isReadable(readModels, idOf(projector, back.live))))
    throw fault(
      'nothing_to_roll_back_to',
      `The previous generation of ${name} cannot be read. Rebuild it from the log: ${rebuildCommand(name)}`,
    );
  if (!(await readModels.point(name, version, back, pointer))) throw switchedByOther(name);
  return generationName(idOf(projector, back.live));
};
