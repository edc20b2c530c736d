import type { Projector } from '../../projections/projector';
import { monotonicMs, pause } from '../clock';
import type { EventLog, Position } from '../event-log/event-log';
import { codeOf } from '../fault';
import { damaged, isDamage, unreadable } from '../read-models/damage';
import {
  generationName,
  type Generation,
  type GenerationId,
  type ReadModels,
} from '../read-models/read-models';
import { sharedRuns } from '../shared-runs';
import {
  isMismatch,
  mustMatchLog,
  openLiveGenerations,
  type LiveGeneration,
  type Report,
} from './live-generations';

/**
 * The generations in use, according to the pointers. They guarantee that a write reported as visible is visible in every
 * process, even while read models are being switched:
 *
 * - A write counts as visible once it is in the live generation and in all that were live within the last
 *   STILL_READ_MS, according to pointers read after the wait (`refresh`, `shown`).
 * - A process reads only what was live at most FRESH_MS ago: if its last look at the pointers is older, it looks again
 *   before reading (`isUpToDate`, `refresh`), and does not read if that fails.
 * - It switches to the next generation once that has caught up with the current one. Until then it compares the two
 *   before every query: the one that is ahead contains everything reported as visible.
 * - Both are projected in the meantime, and for STILL_PROJECTED_MS after a switch, so that no write waits in vain.
 */
export interface ActiveGenerations {
  /** One per projector. Queries go to these. */
  live(): readonly LiveGeneration[];
  /** The generations to project: the live ones, the previous ones, and those that other processes may still read. */
  projected(): readonly LiveGeneration[];
  /** The generations that must contain a write before it counts as visible. */
  shown(): readonly Generation[];
  /** Reads the pointers. Never joins a read that started before the call. */
  refresh(): Promise<void>;
  /** Whether queries are allowed. If not, call `refresh` first. */
  isUpToDate(): boolean;
}

export const STILL_READ_MS = 2_000;
export const STILL_PROJECTED_MS = 4_000;

/** Less than STILL_READ_MS, leaving time for a query that is already running. */
const FRESH_MS = 1_000;

/** How long a process that was suspended holds back queries until the new live generation has caught up. */
const MAX_RESUME_MS = 1_000;
const POLL_MS = 15;

/** The active generations of one projector. */
interface Active {
  readonly projector: Projector;
  readonly readModels: ReadModels;
  readonly log: EventLog;
  /** By number. */
  readonly open: Map<number, Generation>;
  /** The numbers of generations that cannot be used. Numbers are never reused, so they are not tried again. */
  readonly unusable: Set<number>;
  /** The numbers of damaged generations that `onDamage` was called with. */
  readonly reported: Set<number>;
  readonly onDamage: Report;
  live: Generation;
  /** The generation pointed at, while it is still behind the live one: reads must not go back in time. */
  next?: Generation | undefined;
  /** The head of the log after the pointer moved there, if the live one is damaged. */
  headBefore?: Position | undefined;
  previous?: Generation | undefined;
  /** Generations that were live until recently and may still be read, or are still projected. */
  recent: { readonly read: readonly Generation[]; readonly projected: readonly Generation[] };
  /** When the last successful look at the pointers started. */
  lookedAt: number;
}

const present = <T>(all: readonly (T | undefined)[]): readonly T[] => [
  ...new Set(all.filter((item) => item !== undefined)),
];

const projectedOf = ({ live, previous, next, recent }: Active): readonly Generation[] =>
  present([live, previous, next, ...recent.projected]);

/** Undefined: it is damaged or gone. */
const appliedBy = async ({ reader }: Generation): Promise<Position | undefined> => {
  try {
    return (await reader.applied()) ?? '';
  } catch (error) {
    if (codeOf(error) !== 'generation_removed' && !isDamage(error)) throw error;
    return undefined;
  }
};

/**
 * Asks the next generation first: it never goes back, so it still shows at least as much when the answer is used. If the
 * live one is damaged, the next one must show all that was in the log when that was noticed.
 */
const advance = async (active: Active): Promise<void> => {
  if (active.next === undefined) return;
  const ahead = await appliedBy(active.next);
  if (ahead === undefined) return;
  const shown =
    (await appliedBy(active.live)) ?? (active.headBefore ??= (await active.log.head())?.position ?? '');
  if (ahead < shown) return;
  active.live = active.next;
  active.next = undefined;
};

const idOf = ({ projector }: Active, generation: number): GenerationId => ({
  projection: projector.name,
  version: projector.version,
  generation,
});

const open = async (active: Active, number: number): Promise<Generation> => {
  const known = active.open.get(number);
  if (known !== undefined) return known;
  const { projector, readModels, log } = active;
  const generation = await readModels.open(idOf(active, number), projector.collections, await log.identity());
  await mustMatchLog(generation, log, readModels);
  active.open.set(number, generation);
  return generation;
};

/** A damaged generation must not keep the others from being followed. */
const openPointedAt = (active: Active, number: number): Promise<Generation> =>
  open(active, number).catch((error: unknown) => {
    if (!isDamage(error)) throw error;
    const generation = unreadable(idOf(active, number), error);
    active.open.set(number, generation);
    return generation;
  });

/** Removed and damaged generations, and those that do not match the log since it was set back, are not read by anyone. */
const openIfUsable = async (active: Active, number: number): Promise<Generation | undefined> => {
  if (active.unusable.has(number)) return undefined;
  return open(active, number).catch((error: unknown) => {
    if (codeOf(error) !== 'generation_removed' && !isMismatch(error) && !isDamage(error)) throw error;
    active.unusable.add(number);
    return undefined;
  });
};

const liveWithin = async (active: Active, ms: number): Promise<readonly Generation[]> => {
  const recent: (Generation | undefined)[] = [];
  const { name, version } = active.projector;
  for (const number of await active.readModels.liveLately(name, version, ms))
    recent.push(await openIfUsable(active, number));
  return present(recent);
};

/** Both generations may be behind what was reported as visible in the meantime, so wait for the head of the log. */
const catchUpAfterSuspension = async (next: Generation, log: EventLog): Promise<void> => {
  const head = (await log.head())?.position ?? '';
  const end = monotonicMs() + MAX_RESUME_MS;
  while (((await next.reader.applied()) ?? '') < head && monotonicMs() < end) await pause(POLL_MS);
};

/** Whichever process found it. */
const reportDamage = async ({ live, readModels, reported, onDamage }: Active): Promise<void> => {
  const { id } = live;
  const why = reported.has(id.generation) ? undefined : await readModels.damageOf(id);
  if (why === undefined) return;
  reported.add(id.generation);
  onDamage(`The read model ${generationName(id)} cannot be read.`, damaged(id, why));
};

const follow = async (active: Active, wasSuspended: boolean): Promise<void> => {
  const { name, version } = active.projector;
  const pointer = await active.readModels.pointer(name, version);
  if (pointer === undefined) return;
  // The one that is ahead now contains everything reported as visible before the pointer moved on.
  if (active.next !== undefined && active.next.id.generation !== pointer.live) await advance(active);
  await reportDamage(active);
  const pointed = await openPointedAt(active, pointer.live);
  if (pointed !== active.next) active.headBefore = undefined;
  active.next = pointed === active.live ? undefined : pointed;
  if (wasSuspended && active.next !== undefined) await catchUpAfterSuspension(active.next, active.log);
  await advance(active);
  const { previous } = pointer;
  active.previous = previous === undefined ? undefined : await openIfUsable(active, previous);
  const projected = await liveWithin(active, STILL_PROJECTED_MS);
  active.recent = { projected, read: projected.length === 0 ? [] : await liveWithin(active, STILL_READ_MS) };
  const used = projectedOf(active);
  for (const [number, generation] of active.open) if (!used.includes(generation)) active.open.delete(number);
};

/** No switch is in progress: only a change of the pointers can change anything. */
const isSettled = ({ next, recent }: Active): boolean => next === undefined && recent.projected.length === 0;

/** A successful look counts from when it started. */
const look = async (active: Active): Promise<void> => {
  const began = monotonicMs();
  await follow(active, began - active.lookedAt > FRESH_MS);
  active.lookedAt = began;
};

export interface ActiveOptions {
  /** Called once when a live generation is found to be damaged. */
  readonly onDamage?: Report;
  /** Called when a damaged generation is replaced. Omitted: it stays live, and cannot be read. */
  readonly onReplaced?: Report | undefined;
}

export const openActiveGenerations = async (
  projectors: readonly Projector[],
  readModels: ReadModels,
  log: EventLog,
  { onDamage = () => undefined, onReplaced }: ActiveOptions = {},
): Promise<ActiveGenerations> => {
  const lookedAt = monotonicMs();
  const opened = await openLiveGenerations(projectors, readModels, log, onReplaced);
  const all: readonly Active[] = opened.map(({ projector, generation }) => ({
    projector,
    readModels,
    log,
    open: new Map([[generation.id.generation, generation]]),
    unusable: new Set(),
    reported: new Set(),
    onDamage,
    live: generation,
    recent: { read: [], projected: [] },
    lookedAt,
  }));

  /** The token of the last look at the pointers, if it succeeded. */
  let seen: number | undefined;

  /** Every write looks at the pointers. While they are unchanged and no switch is in progress, the token is enough. */
  const { fresh: refresh } = sharedRuns(async (): Promise<void> => {
    const began = monotonicMs();
    const token = readModels.pointersToken?.();
    if (token !== undefined && token === seen && all.every(isSettled)) {
      for (const item of all) item.lookedAt = began;
      return;
    }
    seen = undefined;
    const followed = await Promise.allSettled(all.map(look));
    for (const item of followed) if (item.status === 'rejected') throw item.reason;
    seen = token;
  });
  await refresh();

  return {
    live: () => all.map(({ projector, live }) => ({ projector, generation: live })),
    projected: () =>
      all.flatMap((active) =>
        projectedOf(active).map((generation) => ({ projector: active.projector, generation })),
      ),
    shown: () => all.flatMap(({ live, next, recent }) => present([live, next, ...recent.read])),
    refresh,
    isUpToDate: () => {
      const now = monotonicMs();
      return all.every((item) => item.next === undefined && now - item.lookedAt <= FRESH_MS);
    },
  };
};
