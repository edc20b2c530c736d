import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';

/** Keeps a read model from moving, as a broken disk would, until it is told to go on. */
export const stuckReadModel = (folder: string, projection: string): { goOn(): void } => {
  const db = new DatabaseSync(join(folder, 'read-models', `${projection}_v2_1.db`), { timeout: 5_000 });
  db.exec(`CREATE TRIGGER stuck BEFORE UPDATE ON control BEGIN SELECT RAISE(ABORT, 'stuck'); END`);
  return {
    goOn: () => {
      db.exec('DROP TRIGGER stuck');
      db.close();
    },
  };
};
