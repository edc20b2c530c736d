import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { firstGeneration } from './generation-names';

interface Hindered {
  goOn(): void;
  /** Leaves the read model as it is. */
  close(): void;
}

const hindered = (folder: string, projection: string, work: string): Hindered => {
  const db = new DatabaseSync(join(folder, 'read-models', `${firstGeneration(projection)}.db`), {
    timeout: 5_000,
  });
  db.exec(`CREATE TRIGGER hindered BEFORE UPDATE ON control BEGIN SELECT ${work}; END`);
  return {
    goOn: () => {
      db.exec('DROP TRIGGER hindered');
      db.close();
    },
    close: () => db.close(),
  };
};

/** Prevents a read model from advancing, as a broken disk would, until `goOn` is called. */
export const stuckReadModel = (folder: string, projection: string): Hindered =>
  hindered(folder, projection, `RAISE(ABORT, 'stuck')`);

/** Makes every commit of a read model slow: it takes most of a second of its thread by default. */
export const slowReadModel = (folder: string, projection: string, steps = 2_000_000): Hindered =>
  hindered(
    folder,
    projection,
    `(SELECT sum(x) FROM (WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < ${steps}) SELECT x FROM c))`,
  );
