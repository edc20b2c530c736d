import { codeOf, messageOf } from '../../fault';
import { isDamagedFile } from '../../sqlite/database';
import { damaged, isDamage } from '../damage';
import type { GenerationId } from '../read-models';

/** Why the file of a generation is damaged, if that is what the error means. */
const whyDamaged = (error: unknown, path: string): string | undefined =>
  codeOf(error) === 'contents_lost' || isDamagedFile(error, path)
    ? `${path}: ${messageOf(error).replace(/\.$/, '')}.`
    : undefined;

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
    const why = isDamage(error) ? undefined : whyDamaged(error, path);
    if (why === undefined) throw error;
    mark(id, why);
    throw damaged(id, why);
  }
};
