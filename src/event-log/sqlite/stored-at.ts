import { inTransaction, type Database } from '../../sqlite/database';

/**
 * The column for the log's own time of an event that came with a later one. Earlier programs made logs without it and work
 * beside it: they name the columns that they write and read.
 */
export const hasStoredAt = (db: Database): boolean =>
  db.prepare(`SELECT 1 FROM pragma_table_info('events') WHERE name = 'stored_at'`).get() !== undefined;

export const haveStoredAt = (db: Database): void => {
  if (hasStoredAt(db)) return;
  inTransaction(db, () => {
    if (!hasStoredAt(db)) db.exec('ALTER TABLE events ADD COLUMN stored_at INTEGER');
  });
};
