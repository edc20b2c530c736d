import type { Projector } from '../../projections/projector';
import { fault } from '../fault';
import type { EventLog, Position } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import {
  generationName,
  type Build,
  type Generation,
  type GenerationId,
  type ReadModels,
  type Target,
} from '../read-models/read-models';
import { barrier } from './barrier';
import { compare, type Comparison } from './compare';
import { consumer, type Consumer } from './consumer';
import { leaseOn, rebuildLease } from './lease';
import { matchesLog } from './live-generations';
import { parkedTenants, retryDue } from './parking';
import { project, runInto } from './projection-run';
import { leftByRebuild } from './rebuild-plan';

export interface ReplayParts {
  readonly log: EventLog;
  readonly streams: Streams;
  readonly readModels: ReadModels;
  readonly program: string;
  readonly onTrouble: (what: string, error: unknown) => void;
  /** Shared by those who replay at the same time, so that the log is read once. */
  readonly consumer?: Consumer;
  /** Indexes keep the thread that writes for long: those that are rebuilt together wait for each other around them. */
  readonly allFilled?: () => Promise<void>;
  readonly allIndexed?: () => Promise<void>;
}

export interface RebuildOptions {
  /** Switch only if the new filling equals the live one. */
  readonly ifEqual: boolean;
  /** Switch although it parks a tenant that the live one does not park. */
  readonly acceptParked: boolean;
  readonly tell: (step: RebuildStep) => void;
}

export type RebuildStep =
  | { readonly step: 'filling'; readonly done: number; readonly total: number }
  | { readonly step: 'indexing' | 'comparing' | 'switching' };

export interface Rebuilt {
  readonly projection: string;
  readonly generation: string;
  readonly events: number;
  /** Undefined where there was nothing of the same version to compare with. */
  readonly comparison?: Comparison;
  readonly parked: number;
}

const RENEW_MS = 500;

/** Nothing can be renewed while the indexes are made. Where a holder's death can be seen, nobody waits so long. */
const LEASE_MS = 120_000;

/** Writers may never stop: what is left then is projected after the switch, before anybody reads it. */
const NEARLY_ALL = 1_000;

/**
 * The number of a generation that a killed rebuild has left, to go on with, or a fresh one. Nobody can remove it while
 * the lease on the rebuild is held.
 */
const numberToFill = async (readModels: ReadModels, projector: Projector): Promise<number> =>
  (await leftByRebuild(readModels, projector)) ?? readModels.nextNumber(projector.name, projector.version);

const openToFill = async ({ readModels, log }: ReplayParts, projector: Projector): Promise<Build> => {
  const generation = await numberToFill(readModels, projector);
  const id: GenerationId = { projection: projector.name, version: projector.version, generation };
  const open = async () => readModels.build(id, projector.collections, await log.identity());
  const found = await open();
  if (await matchesLog(found, log)) return found;
  await readModels.drop(id);
  return open();
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

const switchedMeanwhile = (name: string) =>
  fault('rebuild_running', `${name} was switched by somebody else meanwhile.`);

/** Fills a fresh generation beside the live one, compares, and switches to it. Killed at any moment, live is untouched. */
export const rebuild = async (
  parts: ReplayParts,
  projector: Projector,
  options: RebuildOptions,
): Promise<Rebuilt> => {
  const { log, readModels, consumer: events = consumer(log, parts.streams) } = parts;
  const { name, version, collections } = projector;
  const lease = leaseOn(readModels, rebuildLease(name), parts.onTrouble, LEASE_MS);
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
  const discard = async ({ id }: Generation): Promise<void> => {
    await release();
    if (await readModels.markRemoved(id, { held: rebuildLease(name), live: true })) await readModels.drop(id);
  };

  const tell = (step: RebuildStep): void => {
    note = JSON.stringify(step);
    options.tell(step);
  };

  /** A killed rebuild may have left parked tenants that can go on now: they come first. */
  const fill = async (generation: Target): Promise<void> => {
    for (let left = Infinity; left > NEARLY_ALL;) {
      const head = await log.head();
      if (head === undefined) return;
      const total = await log.distance(undefined, head.position);
      left = await log.distance((await generation.control()).to?.position, head.position);
      const moved = (position: Position): void => {
        void log.distance(undefined, position).then(
          (done) => tell({ step: 'filling', done, total }),
          () => undefined,
        );
      };
      const run = await runInto(parts, projector, generation, moved);
      await retryDue(run);
      await project(run, events.upTo(head.position));
    }
  };

  const follow =
    (generation: Target) =>
    async (position: Position): Promise<void> =>
      project(await runInto(parts, projector, generation), events.upTo(position));

  /** A new version is pointed at before anybody has filled it: there is nothing to compare with or to go back to. */
  const filledLive = async (number: number | undefined): Promise<Generation | undefined> => {
    if (number === undefined) return undefined;
    const id = { projection: name, version, generation: number };
    const live = await readModels.open(id, collections, await log.identity());
    return (await live.control()).to !== undefined && (await matchesLog(live, log)) ? live : undefined;
  };

  const compared = async (generation: Generation, live: Generation): Promise<Comparison> => {
    tell({ step: 'comparing' });
    const { to } = await generation.control();
    if (to !== undefined) await follow(live)(to.position);
    return compare(projector, live, generation, {
      follow: follow(generation),
      onDifference: () => undefined,
    });
  };

  const mayBeSwitchedTo = (comparison: Comparison | undefined, onlyHere: readonly string[]): void => {
    if (options.ifEqual && comparison !== undefined && comparison.differences > 0)
      throw fault(
        'rebuild_differs',
        `${name}: ${comparison.differences} documents differ from the live ones.`,
      );
    if (onlyHere.length > 0 && !options.acceptParked)
      throw fault('rebuild_parks', `${name}: the rebuild parks ${onlyHere.slice(0, 5).join(', ')}.`);
  };

  try {
    const build = await openToFill(parts, projector);
    await fill(build);
    await parts.allFilled?.();
    tell({ step: 'indexing' });
    const generation = await build.finish();
    await parts.allIndexed?.();
    await fill(generation);
    const pointer = await readModels.pointer(name, version);
    if (pointer?.live === generation.id.generation) throw switchedMeanwhile(name);
    const live = await filledLive(pointer?.live);
    const comparison = live === undefined ? undefined : await compared(generation, live);
    const onlyHere = await parkedOnlyIn(generation, live);
    try {
      mayBeSwitchedTo(comparison, onlyHere);
    } catch (error) {
      await discard(generation);
      throw error;
    }
    tell({ step: 'switching' });
    await fill(generation);
    const next = {
      live: generation.id.generation,
      ...(live === undefined ? {} : { previous: live.id.generation }),
    };
    if (!(await readModels.point(name, version, next, pointer))) throw switchedMeanwhile(name);
    const { to } = await generation.control();
    return {
      projection: name,
      generation: generationName(generation.id),
      events: to === undefined ? 0 : await log.distance(undefined, to.position),
      ...(comparison === undefined ? {} : { comparison }),
      parked: onlyHere.length,
    };
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
  const shared = { ...parts, consumer: consumer(parts.log, parts.streams) };
  const [filled, indexed] = [barrier(projectors.length), barrier(projectors.length)];
  const one = async (projector: Projector): Promise<Rebuilt> => {
    const [allFilled, allIndexed] = [filled(), indexed()];
    try {
      const mine = { ...shared, allFilled: allFilled.arrive, allIndexed: allIndexed.arrive };
      return await rebuild(mine, projector, optionsFor(projector));
    } finally {
      allFilled.leave();
      allIndexed.leave();
    }
  };
  return Promise.allSettled(projectors.map(one));
};

/** Back to the generation before the last switch. */
export const rollback = async (readModels: ReadModels, { name, version }: Projector): Promise<string> => {
  const pointer = await readModels.pointer(name, version);
  if (pointer?.previous === undefined)
    throw fault('nothing_to_roll_back_to', `${name} has no previous generation.`);
  const back = { live: pointer.previous, previous: pointer.live };
  if (await readModels.isRemoved({ projection: name, version, generation: back.live }))
    throw fault('nothing_to_roll_back_to', `The previous generation of ${name} is being removed.`);
  if (!(await readModels.point(name, version, back, pointer))) throw switchedMeanwhile(name);
  return generationName({ projection: name, version, generation: back.live });
};
