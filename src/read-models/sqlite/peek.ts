import { existsSync } from 'node:fs';
import { openForReading } from '../../sqlite/database';
import {
  COMMON_COLLECTIONS,
  generationRemoved,
  type GenerationId,
  type GenerationView,
} from '../read-models';
import { guarded } from './damaged-file';
import { generationReader, type GenerationReader } from './generation-reader';
import { orUnavailable } from './sqlite-generation';

/** Not marked as damaged, because another process may be creating it. */
const unmarked = (): void => undefined;

/** Opens the generation's file for each query only, since it may be removed in between. */
export const peekAt = (path: string, id: GenerationId): GenerationView | undefined => {
  const asking = async <T>(ask: (reader: GenerationReader) => T): Promise<T> => {
    if (!existsSync(path)) throw generationRemoved(id);
    return orUnavailable(path, () =>
      guarded(id, path, unmarked, () => {
        const db = openForReading(path);
        try {
          return ask(generationReader(db, COMMON_COLLECTIONS));
        } finally {
          db.close();
        }
      }),
    );
  };
  if (!existsSync(path)) return undefined;
  return {
    id,
    control: () => asking((reader) => reader.control()),
    scan: (collection, limit, after = { tenantId: '' }) =>
      asking((reader) => reader.scan(collection, limit, after)),
  };
};
