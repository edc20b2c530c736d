import { join } from 'node:path';
import { inTransaction, isBusy, openForWriting } from '../../src/sqlite/database';
import { disposableWriter } from '../../src/sqlite/disposable-file';
import { freshFolder } from '../support/folders';

it('a writer does not wait for a file that another process has locked: appends share its thread', () => {
  const path = join(freshFolder(), 'some.db');
  const file = disposableWriter(path, (db) => db.exec('CREATE TABLE IF NOT EXISTS uses (id INTEGER)'));
  const write = (): void =>
    file.use((db) => inTransaction(db, () => void db.prepare('INSERT INTO uses VALUES (1)').run()));
  write();
  const other = openForWriting(path, 'NORMAL');
  other.exec('BEGIN IMMEDIATE');
  const began = performance.now();
  try {
    write();
    throw new Error('It was not locked.');
  } catch (error) {
    expect(isBusy(error)).toBe(true);
  }
  expect(performance.now() - began).toBeLessThan(500);
  other.close();
  write();
  file.close();
});
