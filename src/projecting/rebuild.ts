import type { Projector } from '../../projections/projector';
import type { Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { fault } from '../fault';
import {
  generationName,
  generationsOf,
  idOf,
  liveOf,
  newGeneration,
  type Build,
  type Generation,
  type GenerationId,
  type ReadModels,
  type RegistryState,
  type Target,
} from '../read-models/read-models';
import { damageIn, REBUILD, unlessDamaged } from '../read-models/damage';
import { compare, type Comparison, type Difference } from './compare';
import type { Consumer } from './consumer';
import { keptLeases, rebuildLease, type KeptLeases } from './lease';
import { matchesLog } from './live-generations';
import { parkedTenants } from './parked-tenants';
import { retryDue } from './retry-parked';
import { project, runInto } from './projection-run';

export interface ReplayDependencies extends LedgerLog {
  readonly readModels: ReadModels;
  readonly program: string;
  readonly onError: (what: string, error: unknown) => void;
  /** Shared by concurrent replays, so that the log is read once. */
  readonly consumer: Consumer;
  readonly abort?: AbortSignal;
}

export interface RebuildOptions {
  /** Switch although the new generation differs from the live one, or parks a tenant that the live one does not park. */
  readonly acceptDifferences: boolean;
  readonly onStep: (step: RebuildStep) => void;
  readonly onDifference: (difference: Difference) => void;
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

interface Rebuild extends ReplayDependencies, RebuildOptions {
  readonly projector: Projector;
}

/** Writes may never stop, so the last events may be projected after the switch, before the generation is read. */
const MAX_BEHIND = 1_000;

/** What an earlier rebuild has begun and not switched to. */
const unfinishedBuild = (state: RegistryState, projector: Projector): GenerationId | undefined =>
  generationsOf(state, projector).find(
    ({ isLive, leftMs, damage }) => !isLive && leftMs === undefined && damage === undefined,
  );

/** Resumes what an earlier rebuild has begun, or begins. */
const beginBuild = async ({ readModels, log }: ReplayDependencies, projector: Projector): Promise<Build> => {
  const { name, version, collections } = projector;
  const left = unfinishedBuild(await readModels.state(), projector);
  const found =
    left === undefined ? undefined : await unlessDamaged(readModels.build(idOf(left), collections));
  if (found !== undefined && (await matchesLog(found, log))) return found;
  if (left !== undefined) await readModels.remove(left, { live: true });
  const id = newGeneration(name, version);
  await readModels.create(id, collections, await log.identity());
  return readModels.build(id, collections);
};

/** Retries parked tenants first: a killed rebuild may have left some that can resume now. */
const projectNearlyAll = async (rebuild: Rebuild, target: Target): Promise<void> => {
  const { log, projector, consumer, onStep, abort } = rebuild;
  for (let left = Infinity; left > MAX_BEHIND;) {
    abort?.throwIfAborted();
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
    await project(run, consumer.upTo(head.position), abort === undefined ? {} : { abort });
  }
};

/** A new version has a live generation before anything is built: then there is nothing to compare with. */
const openBuiltLive = async (
  { readModels, log, projector }: Rebuild,
  id: GenerationId | undefined,
): Promise<Generation | undefined> => {
  if (id === undefined) return undefined;
  const live = await readModels.open(idOf(id), projector.collections);
  return (await live.control()).to !== undefined && (await matchesLog(live, log)) ? live : undefined;
};

const compareWith = async (rebuild: Rebuild, live: Generation, rebuilt: Generation): Promise<Comparison> => {
  const { projector, consumer, onStep, onDifference } = rebuild;
  onStep({ step: 'comparing' });
  const follow =
    (target: Target) =>
    async (position: Position): Promise<void> =>
      project(await runInto(rebuild, projector, target), consumer.upTo(position));
  const { to } = await rebuilt.control();
  if (to !== undefined) await follow(live)(to.position);
  return compare(projector, live, rebuilt, { follow: follow(rebuilt), onDifference });
};

interface Compared {
  readonly live: Generation;
  readonly comparison: Comparison;
}

/** Undefined: there is no live generation, or it is damaged, which is the same to a rebuild. */
const comparedWithLive = async (
  rebuild: Rebuild,
  id: GenerationId | undefined,
  rebuilt: Generation,
): Promise<Compared | undefined> => {
  try {
    const live = await openBuiltLive(rebuild, id);
    return live === undefined ? undefined : { live, comparison: await compareWith(rebuild, live, rebuilt) };
  } catch (error) {
    if (id === undefined || damageIn(error)?.generation !== generationName(id)) throw error;
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

/** Why not to switch to the rebuild, if there is a reason. What was built is kept. */
const refusalOf = (
  { acceptDifferences, projector: { name } }: Rebuild,
  differences: number,
  newlyParked: readonly string[],
): Error | undefined => {
  if (acceptDifferences || differences + newlyParked.length === 0) return undefined;
  const differ = `${differences === 1 ? '1 document differs' : `${differences} documents differ`} from the live read model`;
  const parks = `the rebuild parks ${newlyParked.slice(0, 5).join(', ')}`;
  const found = [...(differences > 0 ? [differ] : []), ...(newlyParked.length > 0 ? [parks] : [])];
  return fault(
    'rebuild_differs',
    `${name}: ${found.join(', and ')}. The live read model was kept. To switch all the same: ${REBUILD} --accept-differences`,
  );
};

const switchedByOther = (name: string) =>
  fault('rebuild_running', `${name} was switched by another process during the rebuild.`);

/**
 * Builds a new generation next to the live one, compares them, and switches to it. If killed at any moment, the live one
 * is untouched.
 */
const rebuildOne = async (rebuild: Rebuild): Promise<Rebuilt> => {
  const { log, readModels, projector, onStep } = rebuild;
  const { name } = projector;
  const build = await beginBuild(rebuild, projector);
  await projectNearlyAll(rebuild, build);
  onStep({ step: 'indexing' });
  const rebuilt = await build.finish();
  await projectNearlyAll(rebuild, rebuilt);
  const before = liveOf(await readModels.state(), projector);
  if (before?.generation === rebuilt.id.generation) throw switchedByOther(name);
  const { live, comparison } = (await comparedWithLive(rebuild, before, rebuilt)) ?? {};
  const newlyParked = await parkedOnlyIn(rebuilt, live);
  const refused = refusalOf(rebuild, comparison?.differences ?? 0, newlyParked);
  if (refused !== undefined) throw refused;
  onStep({ step: 'switching' });
  await projectNearlyAll(rebuild, rebuilt);
  if (!(await readModels.makeLive(rebuilt.id, before?.generation))) throw switchedByOther(name);
  const { to } = await rebuilt.control();
  return {
    projection: name,
    generation: generationName(rebuilt.id),
    events: to === undefined ? 0 : await log.distance(undefined, to.position),
    ...(comparison === undefined ? {} : { comparison }),
    parked: newlyParked.length,
  };
};

/** The leases of rebuilds, which keep others from rebuilding the same. */
export interface RebuildLeases {
  /** Why projections cannot be rebuilt now. */
  readonly refused: ReadonlyMap<string, Error>;
  /** Shows everyone how far a rebuild is. */
  note(projection: string, step: RebuildStep): void;
  release(): Promise<void>;
}

const RENEW_MS = 500;

/** Belongs in a thread that no rebuild blocks, because they must be renewed. */
export const takeRebuildLeases = async (
  readModels: ReadModels,
  names: readonly string[],
  onError: (what: string, error: unknown) => void,
): Promise<RebuildLeases> => {
  const notes = new Map<string, string>();
  const refused = new Map<string, Error>();
  const kept = new Map<string, KeptLeases>();
  for (const name of names) {
    const leases = keptLeases(readModels, [rebuildLease(name)], onError);
    if ((await leases.hold()).size > 0) {
      kept.set(name, leases);
      continue;
    }
    const holder = (await readModels.state()).leases.get(rebuildLease(name))?.holder ?? 'another process';
    refused.set(name, fault('rebuild_running', `${name} is being rebuilt by ${holder}.`));
  }
  const renewing = setInterval(() => {
    for (const [name, leases] of kept) void leases.hold(notes.get(name));
  }, RENEW_MS);
  return {
    refused,
    note: (projection, step) => void notes.set(projection, JSON.stringify(step)),
    release: async () => {
      clearInterval(renewing);
      for (const leases of kept.values()) await leases.release();
    },
  };
};

/** Rebuilds several at the same time, reading the log once for all. A failure of one does not stop the others. */
export const rebuildTogether = (
  dependencies: ReplayDependencies,
  projectors: readonly Projector[],
  optionsFor: (projector: Projector) => RebuildOptions,
): Promise<PromiseSettledResult<Rebuilt>[]> =>
  Promise.allSettled(
    projectors.map((projector) => rebuildOne({ ...dependencies, ...optionsFor(projector), projector })),
  );
