import type { Projector } from '../../projections/projector';
import { monotonicMs, pause } from '../clock';
import type { EventLog } from '../event-log/event-log';
import { codeOf } from '../fault';
import type { Generation, ReadModels } from '../read-models/read-models';
import { isMismatch, mustMatchLog, openLiveGenerations, type LiveGeneration } from './live-generations';
import { oneAtATime } from './one-at-a-time';

/**
 * The generations that matter now, as the pointers say, so that whoever was told that a write is shown sees it in every
 * process, also while read models are switched:
 *
 * - A write is shown when the live generation shows it, and so do those that were live within the last STILL_READ_MS,
 *   as the store says after the wait for them (`refresh`, `shown`).
 * - A process reads what was live at most FRESH_MS ago: whoever has not looked for longer looks first (`upToDate`).
 * - It begins to read another generation once that shows as much as the one before shows at this moment. Until then it
 *   compares them before each question: whichever is ahead shows all that anybody was told.
 * - Both are projected meanwhile, and for STILL_PROJECTED_MS after a switch, so that nobody waits in vain.
 */
export interface Tracks {
  /** One per projector: they answer questions. */
  live(): readonly LiveGeneration[];
  /** The live ones, those before them, and those that others may still read: they are projected. */
  projected(): readonly LiveGeneration[];
  /** What a write waits for. */
  shown(): readonly Generation[];
  /** Looks at the pointers now. Whoever asks meanwhile waits for a look that begins after that. */
  refresh(): Promise<void>;
  /** To be awaited before a question; undefined where nothing is to be awaited. */
  upToDate(): Promise<void> | undefined;
}

export const STILL_READ_MS = 2_000;
export const STILL_PROJECTED_MS = 4_000;

/** Less than STILL_READ_MS, with time for a question that has begun. */
const FRESH_MS = 1_000;

/** So long a process that slept holds its questions back for the generation that was switched to meanwhile. */
const AWAKE_MS = 1_000;
const LOOK_AGAIN_MS = 15;

interface Track {
  readonly projector: Projector;
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
  /** When the last look that is over began. */
  lookedAt: number;
}

const present = <T>(all: readonly (T | undefined)[]): readonly T[] => [
  ...new Set(all.filter((one) => one !== undefined)),
];

const projectedOf = (track: Omit<Track, 'open'>): readonly Generation[] =>
  present([track.live, track.previous, track.next, ...track.left.projected]);

/** The one that is pointed at is asked first: what it shows then is no less when it is read. */
const advance = async (track: Track): Promise<void> => {
  if (track.next === undefined) return;
  const { applied: ahead = '' } = await track.next.control();
  const { applied: shown = '' } = await track.live.control();
  if (ahead < shown) return;
  track.live = track.next;
  track.next = undefined;
};

export const openTracks = async (
  projectors: readonly Projector[],
  readModels: ReadModels,
  log: EventLog,
): Promise<Tracks> => {
  const openedAt = monotonicMs();
  const opened = await openLiveGenerations(projectors, readModels, log);
  const tracks: readonly Track[] = opened.map(({ projector, generation }) => ({
    projector,
    open: new Map([[generation.id.generation, generation]]),
    useless: new Set(),
    live: generation,
    left: { read: [], projected: [] },
    lookedAt: openedAt,
  }));

  const open = async ({ projector, open: known }: Track, number: number): Promise<Generation> => {
    const { name: projection, version, collections } = projector;
    const id = { projection, version, generation: number };
    const generation = known.get(number) ?? (await readModels.open(id, collections, await log.identity()));
    if (!known.has(number)) await mustMatchLog(generation, log);
    known.set(number, generation);
    return generation;
  };

  /** Nobody reads what is removed, or what was left behind by a rebuild because the log was set back. */
  const openIfThere = async (track: Track, number: number): Promise<Generation | undefined> => {
    if (track.useless.has(number)) return undefined;
    return open(track, number).catch((error: unknown) => {
      if (codeOf(error) !== 'generation_removed' && !isMismatch(error)) throw error;
      track.useless.add(number);
      return undefined;
    });
  };

  const leftWithin = async (track: Track, ms: number): Promise<readonly Generation[]> => {
    const left: (Generation | undefined)[] = [];
    const { name, version } = track.projector;
    for (const number of await readModels.liveLately(name, version, ms))
      left.push(await openIfThere(track, number));
    return present(left);
  };

  /** What it read before may be long behind, and the other one not there yet: only the log knows what was shown. */
  const catchUpAfterSleep = async (next: Generation): Promise<void> => {
    const head = (await log.head())?.position ?? '';
    const end = monotonicMs() + AWAKE_MS;
    while (((await next.control()).applied ?? '') < head && monotonicMs() < end) await pause(LOOK_AGAIN_MS);
  };

  const forgetUnused = ({ open: known, ...track }: Track): void => {
    const used = projectedOf(track);
    for (const [number, generation] of known) if (!used.includes(generation)) known.delete(number);
  };

  const follow = async (track: Track, hasSlept: boolean): Promise<void> => {
    const { name, version } = track.projector;
    const pointer = await readModels.pointer(name, version);
    if (pointer === undefined) return;
    const { live: number, previous } = pointer;
    // Whichever is ahead now shows what anybody was told before the pointer moved on.
    if (track.next !== undefined && track.next.id.generation !== number) await advance(track);
    const pointed = await open(track, number);
    track.next = pointed === track.live ? undefined : pointed;
    if (hasSlept && track.next !== undefined) await catchUpAfterSleep(track.next);
    await advance(track);
    track.previous = previous === undefined ? undefined : await openIfThere(track, previous);
    const projected = await leftWithin(track, STILL_PROJECTED_MS);
    track.left = { projected, read: projected.length === 0 ? [] : await leftWithin(track, STILL_READ_MS) };
    forgetUnused(track);
  };

  /** A look counts when it is over, from when it began. One that failed counts too: the next one comes soon. */
  const look = async (track: Track): Promise<void> => {
    const began = monotonicMs();
    try {
      await follow(track, began - track.lookedAt > FRESH_MS);
    } finally {
      track.lookedAt = began;
    }
  };

  const refresh = oneAtATime(async (): Promise<void> => {
    const followed = await Promise.allSettled(tracks.map(look));
    for (const one of followed) if (one.status === 'rejected') throw one.reason;
  });
  await refresh();

  return {
    live: () => tracks.map(({ projector, live }) => ({ projector, generation: live })),
    projected: () =>
      tracks.flatMap((track) =>
        projectedOf(track).map((generation) => ({ projector: track.projector, generation })),
      ),
    shown: () => tracks.flatMap(({ live, next, left }) => present([live, next, ...left.read])),
    refresh,
    upToDate: () => {
      const now = monotonicMs();
      const isUpToDate = ({ next, lookedAt }: Track): boolean =>
        next === undefined && now - lookedAt <= FRESH_MS;
      return tracks.every(isUpToDate) ? undefined : refresh();
    },
  };
};
