import type { Projector } from '../../projections/projector';
import type { EventLog, Head } from '../event-log/event-log';
import { whatIsWrong } from '../event-log/log-watch';
import { codeOf, fault } from '../fault';
import { generationName, type Generation, type Peek, type ReadModels } from '../read-models/read-models';

/** A projector of this program with the generation that answers its queries. */
export interface LiveGeneration {
  readonly projector: Projector;
  readonly generation: Generation;
}

const REBUILD =
  'Put the right log back or, to keep this one, run `tenant-ledger projections rebuild --all` first.';

interface Mismatch {
  readonly code: 'read_models_of_another_log' | 'log_set_back';
  readonly why: string;
}

/**
 * A read model belongs to one log. With another log, or one that was set back (restored from an older backup), its
 * answers would be wrong, so it must not be used.
 */
const mismatchOf = async (generation: Peek, log: EventLog): Promise<Mismatch | undefined> => {
  const { to, log: builtFrom } = await generation.control();
  if (builtFrom !== (await log.identity()))
    return { code: 'read_models_of_another_log', why: 'was built from another event log.' };
  const wrong = to === undefined ? undefined : whatIsWrong(await log.continuity(to), to);
  return wrong === undefined
    ? undefined
    : { code: 'log_set_back', why: `does not match the event log. ${wrong}` };
};

/** Whether it was built from this log as it is now. After the log was set back, it would show events that are gone. */
export const matchesLog = async (generation: Peek, log: EventLog): Promise<boolean> =>
  (await mismatchOf(generation, log)) === undefined;

export const mustMatchLog = async (
  generation: Peek,
  log: EventLog,
  { ifOfAnotherLog }: Pick<ReadModels, 'ifOfAnotherLog'>,
): Promise<void> => {
  const mismatch = await mismatchOf(generation, log);
  if (mismatch === undefined) return;
  const { code, why } = mismatch;
  const help = code === 'log_set_back' ? REBUILD : ifOfAnotherLog;
  throw fault(code, `The read model ${generationName(generation.id)} ${why} ${help}`);
};

export const isMismatch = (error: unknown): boolean =>
  codeOf(error) === 'read_models_of_another_log' || codeOf(error) === 'log_set_back';

/** The number of the live generation if there is no pointer: the first that was not removed, as old versions may be. */
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
  await mustMatchLog(generation, log, readModels);
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

/** The last event that any live read model has applied. */
export const furthestCheckpoint = async (live: readonly LiveGeneration[]): Promise<Head | undefined> => {
  const controls = await Promise.all(live.map(({ generation }) => generation.control()));
  return controls
    .map(({ to }) => to)
    .toSorted((a, b) => ((a?.position ?? '') < (b?.position ?? '') ? -1 : 1))
    .at(-1);
};
