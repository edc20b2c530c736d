import { codeOf, messageOf } from '../../fault';
import { isDamagedFile } from '../../sqlite/database';
import { damaged, isDamage } from '../damage';
import type { GenerationId } from '../read-models';

/** Turns errors that mean damage into `damaged`, after calling `mark`. */
export const guarded = <T>(
  id: GenerationId,
  path: string,
  mark: (id: GenerationId, why: string) => void,
  work: () => T,
): T => {
  try {
    return work();
  } catch (error) {
    const isLost = codeOf(error) === 'contents_lost' || isDamagedFile(error, path);
    if (!isLost || isDamage(error)) throw error;
    const why = `${path}: ${messageOf(error).replace(/\.$/, '')}.`;
    mark(id, why);
    throw damaged(id, why);
  }
};
