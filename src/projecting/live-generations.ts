import type { Projector } from '../../projections/projector';
import type { EventLog, Head } from '../event-log/event-log';
import { lastingContinuity, whatIsWrong } from '../event-log/log-watch';
import { codeOf, fault } from '../fault';
import { isDamage, unreadable } from '../read-models/damage';
import {
  generationName,
  type Generation,
  type Peek,
  type Pointer,
  type ReadModels,
} from '../read-models/read-models';

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
  const wrong = to === undefined ? undefined : whatIsWrong(await lastingContinuity(log, to), to);
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
): Promise<number> => {
  const id = { projection, version, generation };
  const isUsable = !(await readModels.isRemoved(id)) && (await readModels.damageOf(id)) === undefined;
  return isUsable ? generation : firstNumber(readModels, projection, version, generation + 1);
};

export type Report = (what: string, error: unknown) => void;

interface Opening {
  readonly projector: Projector;
  readonly readModels: ReadModels;
  readonly log: EventLog;
  /** Called when a damaged one is replaced by an empty one. Undefined: it stays live, and cannot be read. */
  readonly onReplaced: Report | undefined;
}

const openNumber = async (
  { projector, readModels, log }: Opening,
  generation: number,
): Promise<Generation> => {
  const { name: projection, version, collections } = projector;
  const opened = await readModels.open(
    { projection, version, generation },
    collections,
    await log.identity(),
  );
  await mustMatchLog(opened, log, readModels);
  return opened;
};

/** Opens a generation and makes it live. Undefined: another process was faster. */
const openAsLive = async (
  opening: Opening,
  number: number,
  pointer: Pointer | undefined,
): Promise<Generation | undefined> => {
  const { name, version } = opening.projector;
  const generation = await openNumber(opening, number);
  const next = { ...pointer, live: number };
  return (await opening.readModels.point(name, version, next, pointer)) ? generation : undefined;
};

/** The live generation, or what to use in its place if it is damaged. Undefined: the pointer has moved. */
const openPointedAt = async (opening: Opening, pointer: Pointer): Promise<Generation | undefined> => {
  const { projector, readModels, onReplaced } = opening;
  const { name: projection, version } = projector;
  const id = { projection, version, generation: pointer.live };
  try {
    return await openNumber(opening, pointer.live);
  } catch (error) {
    if (!isDamage(error)) throw error;
    if (onReplaced === undefined) return unreadable(id, error);
    const generation = await openAsLive(opening, await readModels.nextNumber(projection, version), pointer);
    if (generation !== undefined)
      onReplaced(
        `The read model ${generationName(id)} cannot be read, so it is built again from the log.`,
        error,
      );
    return generation;
  }
};

const openLive = async (opening: Opening): Promise<LiveGeneration> => {
  const { projector, readModels } = opening;
  const { name, version } = projector;
  const pointer = await readModels.pointer(name, version);
  const generation = await (pointer === undefined
    ? openAsLive(opening, await firstNumber(readModels, name, version), undefined)
    : openPointedAt(opening, pointer));
  return generation === undefined ? openLive(opening) : { projector, generation };
};

export const openLiveGenerations = async (
  projectors: readonly Projector[],
  readModels: ReadModels,
  log: EventLog,
  onReplaced?: Report,
): Promise<readonly LiveGeneration[]> => {
  const live: LiveGeneration[] = [];
  for (const projector of projectors) live.push(await openLive({ projector, readModels, log, onReplaced }));
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
