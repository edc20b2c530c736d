import type { Projector } from '../../projections/projector';
import { monotonicMs, pause } from '../async/clock';
import type { EventLog, Position } from '../event-log/event-log';
import { codeOf, fault } from '../fault';
import { damaged, isDamage, unreadable } from '../read-models/damage';
import {
  generationName,
  generationsOf,
  idOf,
  type Generation,
  type GenerationId,
  type ReadModels,
  type RegistryState,
  type StoredGeneration,
} from '../read-models/read-models';
import { singleFlight } from '../async/single-flight';
import {
  exists,
  isMismatch,
  openLive,
  openLiveGenerations,
  openMatching,
  provideLive,
  type LiveGeneration,
  type Opening,
  type Report,
} from './live-generations';
import { POLL_MS } from './progress';

/**
 * The generations in use, according to the registry. They guarantee that a write reported as visible is visible in every
 * process, even while read models are being switched:
 *
 * - A write counts as visible once it is in the live generation and in all that were live within the last
 *   STILL_READ_MS, according to a registry read after the wait (`refresh`, `shown`).
 * - A process reads only what was live at most FRESH_MS ago: if its last look at the registry is older, it looks again
 *   before reading (`isUpToDate`, `refresh`), and does not read if that fails.
 * - It switches to the next generation once that has caught up with the current one. Until then it compares the two
 *   before every query: the one that is ahead contains everything reported as visible.
 * - Both are projected in the meantime, and for STILL_PROJECTED_MS after a switch, so that no write waits in vain.
 */
export interface ActiveGenerations {
  /** One per projector. Queries go to these. */
  live(): readonly LiveGeneration[];
  /** The generations to project: the live ones, and those that other processes may still read. */
  projected(): readonly LiveGeneration[];
  /** The generations that must contain a write before it counts as visible. */
  shown(): readonly Generation[];
  /** Creates what is missing: see `provideLive`. */
  provide(onReplaced?: Report): Promise<void>;
  /** Reads the registry. Never joins a read that started before the call. */
  refresh(): Promise<void>;
  /** Whether queries are allowed. If not, call `refresh` first. */
  isUpToDate(): boolean;
  /** The registry as of the last `refresh`, or as long as it has not changed. Undefined: it was never read. */
  state(): RegistryState | undefined;
}

export const STILL_READ_MS = 2_000;
export const STILL_PROJECTED_MS = 2 * STILL_READ_MS;

/** Leaves time for a query that is already running. */
const FRESH_MS = STILL_READ_MS / 2;

/** The active generations of one projector. */
interface Active extends Opening {
  /** By id. */
  readonly open: Map<string, Generation>;
  /** Generations that cannot be used. Ids are never reused, so they are not tried again. */
  readonly unusable: Set<string>;
  /** Damaged generations that `onDamage` was called with. */
  readonly reported: Set<string>;
  onDamage: Report;
  live: Generation;
  /** The live generation according to the registry, while it is still behind: reads must not go back in time. */
  next?: Generation | undefined;
  /** The head of the log after `next` became live, if the one before is damaged. */
  headBefore?: Position | undefined;
  /** Generations that were live until recently and may still be read, or are still projected. */
  recent: { readonly read: readonly Generation[]; readonly projected: readonly Generation[] };
  /** When the last successful look at the registry started. */
  lookedAt: number;
}

const present = <T>(all: readonly (T | undefined)[]): readonly T[] => [
  ...new Set(all.filter((item) => item !== undefined)),
];

const projectedOf = ({ live, next, recent }: Active): readonly Generation[] =>
  present([live, next, ...recent.projected]).filter(exists);

/** Undefined: it is damaged or gone. */
const unlessGone = async (positionOf: () => Promise<Position | undefined>): Promise<Position | undefined> => {
  try {
    return (await positionOf()) ?? '';
  } catch (error) {
    if (codeOf(error) !== 'generation_removed' && !isDamage(error)) throw error;
    return undefined;
  }
};

/**
 * Asks the next generation first: it never goes back, so it still shows at least as much when the answer is used. Of the
 * live one everything committed counts, because documents may be seen before all of their commit have been applied. If
 * it is damaged, the next one must show all that was in the log when that was noticed.
 */
const advance = async (active: Active): Promise<void> => {
  if (active.next === undefined) return;
  const { live, next } = active;
  const ahead = await unlessGone(next.reader.applied);
  if (ahead === undefined) return;
  const shown =
    (exists(live) ? await unlessGone(async () => (await live.control()).to?.position) : '') ??
    (active.headBefore ??= (await active.log.head())?.position ?? '');
  if (ahead < shown) return;
  active.live = next;
  active.next = undefined;
};

const open = async (active: Active, id: GenerationId): Promise<Generation> => {
  const known = active.open.get(id.generation);
  if (known !== undefined) return known;
  const generation = await openMatching(active, id);
  active.open.set(id.generation, generation);
  return generation;
};

/** A damaged generation must not keep the others from being followed. */
const openEvenDamaged = (active: Active, id: GenerationId): Promise<Generation> =>
  open(active, id).catch((error: unknown) => {
    if (!isDamage(error)) throw error;
    const generation = unreadable(idOf(id), error);
    active.open.set(id.generation, generation);
    return generation;
  });

/** Removed and damaged generations, and those that do not match the log since it was rolled back, are not read by anyone. */
const openIfUsable = async (active: Active, id: GenerationId): Promise<Generation | undefined> => {
  if (active.unusable.has(id.generation)) return undefined;
  return open(active, id).catch((error: unknown) => {
    if (codeOf(error) !== 'generation_removed' && !isMismatch(error) && !isDamage(error)) throw error;
    active.unusable.add(id.generation);
    return undefined;
  });
};

const liveWithin = async (
  active: Active,
  all: readonly StoredGeneration[],
  ms: number,
): Promise<readonly Generation[]> => {
  const recent: (Generation | undefined)[] = [];
  for (const id of all)
    if (id.damage === undefined && (id.leftMs ?? Infinity) < ms) recent.push(await openIfUsable(active, id));
  return present(recent);
};

/** Both generations may be behind what was reported as visible in the meantime, so wait a while for the head of the log. */
const catchUpAfterSuspension = async (next: Generation, log: EventLog): Promise<void> => {
  const head = (await log.head())?.position ?? '';
  const end = monotonicMs() + FRESH_MS;
  while (((await next.reader.applied()) ?? '') < head && monotonicMs() < end) await pause(POLL_MS);
};

/** Whichever process found it. */
const reportDamage = ({ live, reported, onDamage }: Active, all: readonly StoredGeneration[]): void => {
  const { id } = live;
  const why = all.find(({ generation }) => generation === id.generation)?.damage;
  if (why === undefined || reported.has(id.generation)) return;
  reported.add(id.generation);
  onDamage(`The read model ${generationName(id)} is damaged.`, damaged(id, why));
};

const follow = async (active: Active, state: RegistryState, wasSuspended: boolean): Promise<void> => {
  const { projector } = active;
  const all = generationsOf(state, projector);
  const live = all.find(({ isLive }) => isLive);
  if (live === undefined)
    throw fault('read_models_unavailable', `The read model ${projector.name} has no live generation.`);
  // The one that is ahead now contains everything reported as visible before another one became live.
  if (active.next !== undefined && active.next.id.generation !== live.generation) await advance(active);
  reportDamage(active, all);
  const pointed = await openEvenDamaged(active, live);
  if (pointed !== active.next) active.headBefore = undefined;
  active.next = pointed === active.live ? undefined : pointed;
  if (wasSuspended && active.next !== undefined) await catchUpAfterSuspension(active.next, active.log);
  await advance(active);
  active.recent = {
    projected: await liveWithin(active, all, STILL_PROJECTED_MS),
    read: await liveWithin(active, all, STILL_READ_MS),
  };
  const used = projectedOf(active);
  for (const [id, generation] of active.open) if (!used.includes(generation)) active.open.delete(id);
};

/** No switch is in progress: only a change of the registry can change anything. */
const isSettled = ({ next, recent }: Active): boolean => next === undefined && recent.projected.length === 0;

/** A successful look counts from when it started. */
const look = async (active: Active, state: RegistryState, began: number): Promise<void> => {
  await follow(active, state, began - active.lookedAt > FRESH_MS);
  active.lookedAt = began;
};

/** Every write looks at the registry. While it is unchanged and no switch is in progress, the token is enough. */
const lookingAt = (all: readonly Active[], { state, stateToken }: ReadModels) => {
  /** The token of the last look, if it succeeded. */
  let seen: number | undefined;
  let last: RegistryState | undefined;
  const { fresh } = singleFlight(async (): Promise<void> => {
    const began = monotonicMs();
    const token = stateToken?.();
    if (token !== undefined && token === seen && all.every(isSettled)) {
      for (const item of all) item.lookedAt = began;
      return;
    }
    seen = undefined;
    const now = await state();
    last = now;
    const followed = await Promise.allSettled(all.map((item) => look(item, now, began)));
    for (const item of followed) if (item.status === 'rejected') throw item.reason;
    seen = token;
  });
  return { refresh: fresh, state: () => last };
};

const openActive = async (
  projectors: readonly Projector[],
  readModels: ReadModels,
  log: EventLog,
): Promise<readonly Active[]> => {
  const lookedAt = monotonicMs();
  const opened = await openLiveGenerations(projectors, readModels, log);
  return opened.map(({ projector, generation }) => ({
    projector,
    readModels,
    log,
    open: new Map([[generation.id.generation, generation]]),
    unusable: new Set(),
    reported: new Set(),
    onDamage: () => undefined,
    live: generation,
    recent: { read: [], projected: [] },
    lookedAt,
  }));
};

export const openActiveGenerations = async (
  projectors: readonly Projector[],
  readModels: ReadModels,
  log: EventLog,
  /** Called once when a live generation is found to be damaged. */
  onDamage: Report = () => undefined,
): Promise<ActiveGenerations> => {
  const all = await openActive(projectors, readModels, log);
  const { refresh, state } = lookingAt(all, readModels);
  // Before the first generation is created, there is nothing to follow.
  if (all.every(({ live }) => exists(live))) await refresh();
  // Only now, because `provide` may replace what is damaged, and reports that.
  for (const item of all) item.onDamage = onDamage;
  return {
    live: () => all.map(({ projector, live }) => ({ projector, generation: live })),
    projected: () =>
      all.flatMap((active) =>
        projectedOf(active).map((generation) => ({ projector: active.projector, generation })),
      ),
    shown: () => all.flatMap(({ live, next, recent }) => present([live, next, ...recent.read])),
    provide: async (onReplaced) => {
      for (const item of all) {
        await provideLive(item, onReplaced);
        item.live = await openLive(item);
      }
      await refresh();
    },
    refresh,
    isUpToDate: () => {
      const now = monotonicMs();
      return all.every((item) => item.next === undefined && now - item.lookedAt <= FRESH_MS);
    },
    state,
  };
};
