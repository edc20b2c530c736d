import { DatabaseSync } from '@photostructure/sqlite';
import { liveSetFile } from './set-files';

interface StuckReadModels {
  release(): void;
  close(): void;
}

const withTrigger = (folder: string, work: string): StuckReadModels => {
  const db = new DatabaseSync(liveSetFile(folder), { timeout: 5_000 });
  db.exec(`CREATE TRIGGER stuck BEFORE UPDATE ON control BEGIN SELECT ${work}; END`);
  return {
    release: () => {
      db.exec('DROP TRIGGER stuck');
      db.close();
    },
    close: () => db.close(),
  };
};

/** Prevents the read models from advancing, as a broken disk would, until `release` is called. */
export const stuckReadModels = (folder: string): StuckReadModels =>
  withTrigger(folder, `RAISE(ABORT, 'stuck')`);

/** Does the work while the read models do not advance. */
export const whileStuck = async (folder: string, work: () => Promise<void>): Promise<void> => {
  const stuck = stuckReadModels(folder);
  try {
    await work();
  } finally {
    stuck.release();
  }
};

/** Makes every commit of the read models slow: it takes most of a second of its thread by default. */
export const slowReadModels = (folder: string, steps = 2_000_000): StuckReadModels =>
  withTrigger(
    folder,
    `(SELECT sum(x) FROM (WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < ${steps}) SELECT x FROM c))`,
  );
