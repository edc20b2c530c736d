import { fault, moreOf, type Fault } from '../fault';
import { generationName, generationRemoved, type Generation, type GenerationId } from './read-models';

/** The command that builds the read models again. */
export const REBUILD = 'tenant-ledger projections rebuild';

/** Marks a generation of which parts may be deleted already. */
export const BEING_REMOVED = 'it is being removed.';

/** The contents of a generation are lost, in whole or in part. Only a rebuild from the log helps. */
export const damaged = (id: GenerationId, why: string): Fault => {
  if (why === BEING_REMOVED) return generationRemoved(id);
  return fault(
    'read_models_unavailable',
    `The read model ${generationName(id)} cannot be read: ${why} Rebuild it from the log: ${REBUILD}`,
    { damaged: generationName(id), why },
  );
};

/** Why a generation is damaged, if that is what the error says. */
export const damageIn = (
  error: unknown,
): { readonly generation: string; readonly why: string } | undefined => {
  const { damaged: generation, why } = moreOf(error);
  return typeof generation === 'string' ? { generation, why: String(why) } : undefined;
};

export const isDamage = (error: unknown): boolean => damageIn(error) !== undefined;

/** Undefined: it is damaged. */
export const unlessDamaged = <T>(work: Promise<T>): Promise<T | undefined> =>
  work.catch((error: unknown) => {
    if (!isDamage(error)) throw error;
    return undefined;
  });

/** Contents that must be there are not. Whoever knows the generation turns it into `damaged`. */
export const lost = (why: string): Fault => fault('contents_lost', why);

/** Takes the place of a generation that cannot be opened: every use fails in the same way. */
export const unreadable = (id: GenerationId, error: unknown): Generation => {
  const fail = async (): Promise<never> => {
    throw error;
  };
  return {
    id,
    maxCommitBytes: 0,
    control: fail,
    scan: fail,
    load: fail,
    commit: fail,
    snapshot: fail,
    scanTexts: fail,
    reader: {
      get: fail,
      find: fail,
      countsBefore: fail,
      scan: fail,
      applied: fail,
    },
  };
};
