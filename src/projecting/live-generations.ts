import type { Projector } from '../../projections/projector';
import type { EventLog } from '../event-log/event-log';
import { fault } from '../fault';
import { generationName, type Generation, type ReadModels } from '../read-models/read-models';

/** The generation that answers questions for each projector of this program. */
export interface LiveGeneration {
  readonly projector: Projector;
  readonly generation: Generation;
}

/**
 * A read store belongs to one log. Another log, or one that was set back (restored from an older backup), would give
 * wrong answers: better none.
 */
export const mustMatchLog = async (generation: Generation, log: EventLog): Promise<void> => {
  const { to, log: builtFrom } = await generation.control();
  const help = 'Move the folder of the read models away and start again: they are rebuilt from the log.';
  const name = generationName(generation.id);
  if (builtFrom !== (await log.identity()))
    throw fault(
      'read_models_of_another_log',
      `The read model ${name} was built from another event log. ${help}`,
    );
  if (to === undefined) return;
  const found = await log.eventIdAt(to.position);
  if (found === to.eventId) return;
  throw fault(
    'read_models_of_another_log',
    `The read model ${name} is ahead of the event log, or the log was set back: the event ${to.eventId} is not at ${to.position}. ${help}`,
  );
};

/** Without a pointer it is the first one; should that be removed, as those of an older version may be, the next. */
const firstNumber = async (
  readModels: ReadModels,
  projection: string,
  version: number,
  generation = 1,
): Promise<number> =>
  (await readModels.isRemoved({ projection, version, generation }))
    ? firstNumber(readModels, projection, version, generation + 1)
    : generation;

const openLive = async (
  projector: Projector,
  readModels: ReadModels,
  log: EventLog,
): Promise<LiveGeneration> => {
  const { name: projection, version, collections } = projector;
  const pointer = await readModels.pointer(projection, version);
  const number = pointer?.live ?? (await firstNumber(readModels, projection, version));
  const id = { projection, version, generation: number };
  const generation = await readModels.open(id, collections, await log.identity());
  await mustMatchLog(generation, log);
  if (pointer === undefined && !(await readModels.point(projection, version, { live: number }, undefined)))
    return openLive(projector, readModels, log);
  return { projector, generation };
};

export const openLiveGenerations = async (
  projectors: readonly Projector[],
  readModels: ReadModels,
  log: EventLog,
): Promise<readonly LiveGeneration[]> => {
  const live: LiveGeneration[] = [];
  for (const projector of projectors) live.push(await openLive(projector, readModels, log));
  return live;
};
