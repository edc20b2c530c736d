import type { Projector } from '../../projections/projector';
import { monotonicMs, pause } from '../clock';
import type { EventLog } from '../event-log/event-log';
import { codeOf } from '../fault';
import type { Generation, ReadModels } from '../read-models/read-models';
import { sharedRuns } from '../shared-runs';
import { isMismatch, mustMatchLog, openLiveGenerations, type LiveGeneration } from './live-generations';

/**
 * The generations that matter now, as the pointers say, so that a write that is reported as shown is seen in every
 * process, also while read models are switched:
 *
 * - A write is shown when the live generation shows it, and so do those that were live within the last STILL_READ_MS,
 *   as the store says after the wait for them (`refresh`, `shown`).
 * - A process reads what was live at most FRESH_MS ago: whoever has not looked for longer looks first (`isUpToDate`,
 *   `refresh`), and reads nothing if that fails.
 * - It begins to read another generation once that shows as much as the one before shows at this moment. Until then it
 *   compares them before each question: whichever is ahead shows all that was reported.
 * - Both are projected in the meantime, and for STILL_PROJECTED_MS after a switch, so that nobody waits in vain.
 */
export interface ActiveGenerations {
  /** One per projector: they answer questions. */
  live(): readonly LiveGeneration[];
  /** The live ones, those before them, and those that others may still read: they are projected. */
  projected(): readonly LiveGeneration[];
  /** What a write waits for. */
  shown(): readonly Generation[];
  /** Looks at the pointers now. Whoever asks during a look waits for one that begins after the question. */
  refresh(): Promise<void>;
  /** May questions be asked? If not, `refresh` comes first. */
  isUpToDate(): boolean;
}

export const STILL_READ_MS = 2_000;
export const STILL_PROJECTED_MS = 4_000;

/** Less than STILL_READ_MS, with time for a question that has begun. */
const FRESH_MS = 1_000;

/** How long a process that slept holds its questions back for the generation that was switched to while it slept. */
const AWAKE_MS = 1_000;
const LOOK_AGAIN_MS = 15;

/** The active generations of one projector. */
interface Active {
  readonly projector: Projector;
  readonly readModels: ReadModels;
  readonly log: EventLog;
  /** By number. */
  readonly open: Map<number, Generation>;
  /** The numbers of those that need not be opened again: no number is given twice. */
  readonly useless: Set<number>;
  live: Generation;
  /** It is pointed at, but does not yet show all that the live one does: reads must not go back in time. */
  next?: Generation | undefined;
  previous?: Generation | undefined;
  /** Those that were live before a switch, as long as they count as still read, and as long as they are projected. */
  left: { readonly read: readonly Generation[]; readonly projected: readonly Generation[] };
  /** When the last look that succeeded began. */
  lookedAt: number;
}

const present = <T>(all: readonly (T | undefined)[]): readonly T[] => [
  ...new Set(all.filter((one) => one !== undefined)),
];

const projectedOf = ({ live, previous, next, left }: Active): readonly Generation[] =>
  present([live, previous, next, ...left.projected]);

/** The one that is pointed at is asked first: what it shows then is no less when it is read. */
const advance = async (active: Active): Promise<void> => {
  if (active.next === undefined) return;
  const ahead = (await active.next.reader.applied()) ?? '';
  const shown = (await active.live.reader.applied()) ?? '';
  if (ahead < shown) return;
  active.live = active.next;
  active.next = undefined;
};

const open = async (active: Active, number: number): Promise<Generation> => {
  const known = active.open.get(number);
  if (known !== undefined) return known;
  const { name: projection, version, collections } = active.projector;
  const id = { projection, version, generation: number };
  const generation = await active.readModels.open(id, collections, await active.log.identity());
  await mustMatchLog(generation, active.log, active.readModels);
  active.open.set(number, generation);
  return generation;
};

/** Nobody reads what is removed, or what was left behind by a rebuild because the log was set back. */
const openIfUseful = async (active: Active, number: number): Promise<Generation | undefined> => {
  if (active.useless.has(number)) return undefined;
  return open(active, number).catch((error: unknown) => {
    if (codeOf(error) !== 'generation_removed' && !isMismatch(error)) throw error;
    active.useless.add(number);
    return undefined;
  });
};

const leftWithin = async (active: Active, ms: number): Promise<readonly Generation[]> => {
  const left: (Generation | undefined)[] = [];
  const { name, version } = active.projector;
  for (const number of await active.readModels.liveLately(name, version, ms))
    left.push(await openIfUseful(active, number));
  return present(left);
};

/** What it read before may be long behind, and the other one not there yet: only the log knows what was shown. */
const catchUpAfterSleep = async (next: Generation, log: EventLog): Promise<void> => {
  const head = (await log.head())?.position ?? '';
  const end = monotonicMs() + AWAKE_MS;
  while (((await next.reader.applied()) ?? '') < head && monotonicMs() < end) await pause(LOOK_AGAIN_MS);
};

const follow = async (active: Active, hasSlept: boolean): Promise<void> => {
  const { name, version } = active.projector;
  const pointer = await active.readModels.pointer(name, version);
  if (pointer === undefined) return;
  // Whichever is ahead now shows what was reported as shown before the pointer moved on.
  if (active.next !== undefined && active.next.id.generation !== pointer.live) await advance(active);
  const pointed = await open(active, pointer.live);
  active.next = pointed === active.live ? undefined : pointed;
  if (hasSlept && active.next !== undefined) await catchUpAfterSleep(active.next, active.log);
  await advance(active);
  const { previous } = pointer;
  active.previous = previous === undefined ? undefined : await openIfUseful(active, previous);
  const projected = await leftWithin(active, STILL_PROJECTED_MS);
  active.left = { projected, read: projected.length === 0 ? [] : await leftWithin(active, STILL_READ_MS) };
  const used = projectedOf(active);
  for (const [number, generation] of active.open) if (!used.includes(generation)) active.open.delete(number);
};

/** It changes only with the pointers. */
const isSettled = ({ next, left }: Active): boolean => next === undefined && left.projected.length === 0;

/** A look counts when it has succeeded, from when it began. */
const look = async (active: Active): Promise<void> => {
  const began = monotonicMs();
  await follow(active, began - active.lookedAt > FRESH_MS);
  active.lookedAt = began;
};

export const openActiveGenerations = async (
  projectors: readonly Projector[],
  readModels: ReadModels,
  log: EventLog,
): Promise<ActiveGenerations> => {
  const lookedAt = monotonicMs();
  const opened = await openLiveGenerations(projectors, readModels, log);
  const all: readonly Active[] = opened.map(({ projector, generation }) => ({
    projector,
    readModels,
    log,
    open: new Map([[generation.id.generation, generation]]),
    useless: new Set(),
    live: generation,
    left: { read: [], projected: [] },
    lookedAt,
  }));

  /** Of the last look at the pointers, if that was followed to its end. */
  let seen: number | undefined;

  /** Every write looks at the pointers. While nothing has changed and nothing is awaited, that is one question. */
  const { fresh: refresh } = sharedRuns(async (): Promise<void> => {
    const began = monotonicMs();
    const token = readModels.pointersToken?.();
    if (token !== undefined && token === seen && all.every(isSettled)) {
      for (const one of all) one.lookedAt = began;
      return;
    }
    seen = undefined;
    const followed = await Promise.allSettled(all.map(look));
    for (const one of followed) if (one.status === 'rejected') throw one.reason;
    seen = token;
  });
  await refresh();

  return {
    live: () => all.map(({ projector, live }) => ({ projector, generation: live })),
    projected: () =>
      all.flatMap((active) =>
        projectedOf(active).map((generation) => ({ projector: active.projector, generation })),
      ),
    shown: () => all.flatMap(({ live, next, left }) => present([live, next, ...left.read])),
    refresh,
    isUpToDate: () => {
      const now = monotonicMs();
      return all.every((one) => one.next === undefined && now - one.lookedAt <= FRESH_MS);
    },
  };
};
