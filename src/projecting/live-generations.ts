import type { Projector } from '../../projections/projector';
import type { EventLog, Head } from '../event-log/event-log';
import { lastingContinuity, logSetBack, whatIsWrong } from '../event-log/log-watch';
import { codeOf, fault, type Fault } from '../fault';
import { isDamage, REBUILD, unreadable } from '../read-models/damage';
import {
  generationName,
  idOf,
  liveOf,
  newGeneration,
  type Generation,
  type GenerationId,
  type Target,
  type ReadModels,
} from '../read-models/read-models';

/** A projector of this program with the generation that answers its queries. */
export interface LiveGeneration {
  readonly projector: Projector;
  readonly generation: Generation;
}

/**
 * A read model belongs to one log. With another log, or one that was rolled back (restored from an older backup), its
 * answers would be wrong, so it must not be used.
 */
const mismatchOf = async (
  generation: Target,
  log: EventLog,
  otherLogHint = '',
): Promise<Fault | undefined> => {
  const { to, log: builtFrom } = await generation.control();
  if (builtFrom !== (await log.identity()))
    return fault(
      'read_models_of_another_log',
      `The read model ${generationName(generation.id)} was built from another event log. ${otherLogHint}`,
    );
  const wrong = to === undefined ? undefined : whatIsWrong(await lastingContinuity(log, to), to);
  return wrong === undefined ? undefined : logSetBack(wrong);
};

/** Whether it was built from this log as it is now. After the log was rolled back, it would show events that are gone. */
export const matchesLog = async (generation: Target, log: EventLog): Promise<boolean> =>
  (await mismatchOf(generation, log)) === undefined;

export const isMismatch = (error: unknown): boolean =>
  codeOf(error) === 'read_models_of_another_log' || codeOf(error) === 'log_set_back';

export type Report = (what: string, error: unknown) => void;

export interface Opening {
  readonly projector: Projector;
  readonly readModels: ReadModels;
  readonly log: EventLog;
}

/** Opens a generation that must have been built from this log. */
export const openMatching = async (
  { projector, readModels, log }: Opening,
  id: GenerationId,
): Promise<Generation> => {
  const generation = await readModels.open(idOf(id), projector.collections);
  const mismatch = await mismatchOf(generation, log, readModels.otherLogHint);
  if (mismatch !== undefined) throw mismatch;
  return generation;
};

const NONE = 'none';

/** False: there is no live generation yet. */
export const exists = ({ id }: Generation): boolean => id.generation !== NONE;

/** Takes the place of the live generation before there is one. */
const notBuilt = ({ name: projection, version }: Projector): Generation =>
  unreadable(
    { projection, version, generation: NONE },
    fault(
      'read_models_unavailable',
      `The read model ${projection} has not been built yet. Start the service, or run: ${REBUILD}`,
    ),
  );

/** What is live. In place of one that is damaged or missing, something of which every use fails. Creates nothing. */
export const openLive = async (opening: Opening): Promise<Generation> => {
  const { projector, readModels } = opening;
  const live = liveOf(await readModels.state(), projector);
  if (live === undefined) return notBuilt(projector);
  try {
    return await openMatching(opening, live);
  } catch (error) {
    if (isDamage(error)) return unreadable(idOf(live), error);
    if (codeOf(error) !== 'generation_removed') throw error;
    return openLive(opening);
  }
};

/** Creates an empty generation, and makes it live if `expected` still is. */
const createLive = async ({ projector, readModels, log }: Opening, expected: string | undefined) => {
  const { name, version, collections } = projector;
  const id = newGeneration(name, version);
  await readModels.create(id, collections, await log.identity());
  if (await readModels.makeLive(id, expected)) return true;
  await readModels.remove(id, { live: true });
  return false;
};

/**
 * Creates what is missing: a first generation or, with `onReplaced`, one in place of a live one that is damaged. Whoever
 * projects then builds it from the log.
 */
export const provideLive = async (opening: Opening, onReplaced?: Report): Promise<void> => {
  const { projector, readModels } = opening;
  const live = liveOf(await readModels.state(), projector);
  if (live === undefined) return void (await createLive(opening, undefined));
  if (onReplaced === undefined) return;
  try {
    await openMatching(opening, live);
  } catch (error) {
    if (!isDamage(error)) throw error;
    if (await createLive(opening, live.generation))
      onReplaced(
        `The read model ${generationName(live)} is damaged, so it is built again from the log.`,
        error,
      );
  }
};

export const openLiveGenerations = async (
  projectors: readonly Projector[],
  readModels: ReadModels,
  log: EventLog,
): Promise<readonly LiveGeneration[]> => {
  const live: LiveGeneration[] = [];
  for (const projector of projectors)
    live.push({ projector, generation: await openLive({ projector, readModels, log }) });
  return live;
};

/** The last event that any live read model that can be read has applied. */
export const furthestCheckpoint = async (live: readonly LiveGeneration[]): Promise<Head | undefined> => {
  const controls = await Promise.allSettled(live.map(({ generation }) => generation.control()));
  return controls
    .map((control) => (control.status === 'fulfilled' ? control.value.to : undefined))
    .toSorted((a, b) => ((a?.position ?? '') < (b?.position ?? '') ? -1 : 1))
    .at(-1);
};
