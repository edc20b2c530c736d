import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { liveGeneration } from './generation-names';

interface StuckReadModel {
  release(): void;
  /** Leaves the read model as it is. */
  close(): void;
}

const withTrigger = (folder: string, projection: string, work: string): StuckReadModel => {
  const db = new DatabaseSync(join(folder, 'read-models', `${liveGeneration(folder, projection)}.db`), {
    timeout: 5_000,
  });
  db.exec(`CREATE TRIGGER stuck BEFORE UPDATE ON control BEGIN SELECT ${work}; END`);
  return {
    release: () => {
      db.exec('DROP TRIGGER stuck');
      db.close();
    },
    close: () => db.close(),
  };
};

/** Prevents a read model from advancing, as a broken disk would, until `release` is called. */
export const stuckReadModel = (folder: string, projection: string): StuckReadModel =>
  withTrigger(folder, projection, `RAISE(ABORT, 'stuck')`);

/** Does the work while a read model does not advance. */
export const whileStuck = async (
  folder: string,
  projection: string,
  work: () => Promise<void>,
): Promise<void> => {
  const stuck = stuckReadModel(folder, projection);
  try {
    await work();
  } finally {
    stuck.release();
  }
};

/** Makes every commit of a read model slow: it takes most of a second of its thread by default. */
export const slowReadModel = (folder: string, projection: string, steps = 2_000_000): StuckReadModel =>
  withTrigger(
    folder,
    projection,
    `(SELECT sum(x) FROM (WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < ${steps}) SELECT x FROM c))`,
  );
