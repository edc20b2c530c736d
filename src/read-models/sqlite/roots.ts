import { join } from 'node:path';
import * as sqlite from '../../sqlite/database';

const TABLE = 'CREATE TABLE IF NOT EXISTS roots (version TEXT PRIMARY KEY, id TEXT NOT NULL) STRICT';

/**
 * Where the chain of each version begins: a row of a small file, which is open only while it is used. A file that is no
 * database is the same as none.
 */
export const rootsIn = (folder: string) => {
  const path = join(folder, 'root.db');
  const orIfDamaged = <T>(work: () => T, otherwise: () => T): T => {
    try {
      return work();
    } catch (error) {
      if (!sqlite.isDamagedFile(error, path)) throw error;
      return otherwise();
    }
  };
  const read = () =>
    sqlite.closing(sqlite.openForReading(path), (db) => db.prepare('SELECT * FROM roots').all());
  const change = (sql: string, ...values: readonly string[]): boolean => {
    const db = sqlite.openForWriting(path, 'FULL');
    const write = (): boolean => {
      db.exec(TABLE);
      return db.prepare(sql).run(...values).changes === 1;
    };
    try {
      return sqlite.inTransaction(db, write);
    } finally {
      sqlite.checkpointAndClose(db);
    }
  };
  return {
    all: (): ReadonlyMap<string, string> => {
      const rows = sqlite.fileIdOf(path) === undefined ? [] : orIfDamaged(read, () => []);
      return new Map(rows.map((row) => [String(row['version']), String(row['id'])]));
    },
    /** Compare-and-set. */
    move: (version: string, from: string, to: string): boolean =>
      change('UPDATE roots SET id = ? WHERE version = ? AND id = ?', to, version, from),
    /** False: there is one already. */
    add: (version: string, id: string): boolean => {
      const add = () => change('INSERT INTO roots VALUES (?, ?) ON CONFLICT DO NOTHING', version, id);
      const isAdded = orIfDamaged(add, () => {
        sqlite.unlinkDatabase(path);
        return add();
      });
      sqlite.syncFile(folder);
      return isAdded;
    },
    remove: (version: string): void => void change('DELETE FROM roots WHERE version = ?', version),
  };
};
