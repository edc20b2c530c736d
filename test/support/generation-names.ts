import { join } from 'node:path';
import { openForReading } from '../../src/sqlite/database';

/** The live generation of a projection in a data folder. */
export const liveGeneration = (folder: string, projection: string): string => {
  const db = openForReading(join(folder, 'read-models', 'registry.db'));
  const row = db
    .prepare(
      'SELECT version, generation FROM generations WHERE projection = ? AND is_live = 1 ORDER BY version DESC',
    )
    .get(projection) as { version: number; generation: string };
  db.close();
  return `${projection}_v${row.version}_${row.generation}`;
};
