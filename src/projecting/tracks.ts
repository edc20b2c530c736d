import type { Projector } from '../../projections/projector';
import { monotonicMs } from '../clock';
import type { EventLog } from '../event-log/event-log';
import type { Generation, Pointer, ReadModels } from '../read-models/read-models';
import { mustMatchLog, openLiveGenerations, type LiveGeneration } from './live-generations';

/**
 * The generations that matter now, as the pointers say. A switch or a rollback by any process is noticed at the next
 * `refresh`; who asks a question meanwhile gets the generation before, which is projected along.
 */
export interface Tracks {
  /** One per projector: they answer questions. */
  live(): readonly LiveGeneration[];
  /** The live ones and those before them: they are projected. */
  projected(): readonly LiveGeneration[];
  /** What a write waits for: the live ones and, shortly after a switch, those that others may still read. */
  shown(): readonly Generation[];
  refresh(): Promise<void>;
}

const STILL_READ_MS = 2_000;

/** Others may notice a switch later, and wait for what only this process projects. */
const STILL_PROJECTED_MS = 4_000;

/** Questions that have begun may still use it for so long. */
const SHUT_AFTER_MS = 5_000;

interface Track {
  readonly projector: Projector;
  live: Generation;
  /** It is pointed at, but does not yet show all that the live one does: reads must not go back in time. */
  next?: Generation | undefined;
  previous?: Generation | undefined;
  /** Those that were live before a switch, and when they were left: for a while they count as still read. */
  left: readonly { readonly generation: Generation; readonly at: number }[];
}

export const openTracks = async (
  projectors: readonly Projector[],
  readModels: ReadModels,
  log: EventLog,
): Promise<Tracks> => {
  const opened = await openLiveGenerations(projectors, readModels, log);
  const tracks: Track[] = opened.map(({ projector, generation }) => ({
    projector,
    live: generation,
    left: [],
  }));

  const generationOf = async (
    { projector, live, previous, next }: Track,
    number: number,
  ): Promise<Generation> => {
    const known = [live, previous, next].find((one) => one?.id.generation === number);
    if (known !== undefined) return known;
    const { name: projection, version, collections } = projector;
    const id = { projection, version, generation: number };
    const generation = await readModels.open(id, collections, await log.identity());
    await mustMatchLog(generation, log);
    return generation;
  };

  const shutLater = (gone: Generation): void => {
    const timer = setTimeout(() => void readModels.shut(gone.id).catch(() => undefined), SHUT_AFTER_MS);
    timer.unref();
  };

  const hasCaughtUp = async (next: Generation, live: Generation): Promise<boolean> =>
    ((await next.control()).applied ?? '') >= ((await live.control()).applied ?? '');

  const swap = (track: Track, next: Generation): void => {
    const now = monotonicMs();
    const lately = track.left.filter(({ at }) => now - at < STILL_PROJECTED_MS);
    track.left = [...lately, { generation: track.live, at: now }];
    track.live = next;
    track.next = undefined;
  };

  const follow = async (track: Track, pointer: Pointer): Promise<void> => {
    const before = [track.live, track.previous, track.next];
    const live = await generationOf(track, pointer.live);
    track.previous = pointer.previous === undefined ? undefined : await generationOf(track, pointer.previous);
    track.next = live === track.live ? undefined : live;
    if (track.next !== undefined && (await hasCaughtUp(track.next, track.live))) swap(track, track.next);
    const after = new Set([track.live, track.previous, track.next]);
    for (const one of before) if (one !== undefined && !after.has(one)) shutLater(one);
  };

  const isStale = ({ live, previous }: Track, pointer: Pointer): boolean =>
    live.id.generation !== pointer.live || previous?.id.generation !== pointer.previous;

  const refresh = async (): Promise<void> => {
    for (const track of tracks) {
      const pointer = await readModels.pointer(track.projector.name, track.projector.version);
      if (pointer !== undefined && isStale(track, pointer)) await follow(track, pointer);
    }
  };
  await refresh();

  const leftWithin = ({ left }: Track, ms: number): readonly Generation[] =>
    left.filter(({ at }) => monotonicMs() - at < ms).map(({ generation }) => generation);

  const wanted = (track: Track): readonly Generation[] => {
    const all = [track.live, track.previous, track.next, ...leftWithin(track, STILL_PROJECTED_MS)];
    return [...new Set(all.filter((one) => one !== undefined))];
  };

  const shown = (track: Track): readonly Generation[] => {
    const ahead = track.next === undefined ? [] : [track.next];
    return [track.live].concat(ahead, leftWithin(track, STILL_READ_MS));
  };

  return {
    live: () => tracks.map(({ projector, live }) => ({ projector, generation: live })),
    projected: () =>
      tracks.flatMap((track) =>
        wanted(track).map((generation) => ({ projector: track.projector, generation })),
      ),
    shown: () => tracks.flatMap((track) => shown(track)),
    refresh,
  };
};
