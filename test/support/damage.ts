import { DatabaseSync } from '@photostructure/sqlite';
import { closeSync, openSync, rmSync, statSync, truncateSync, writeSync } from 'node:fs';

const overwrite = (path: string, from: number, bytes: number): void => {
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(bytes, 0xab), 0, bytes, from);
  closeSync(file);
};

const overwritePart = (path: string, from: number, to: number): void => {
  const { size } = statSync(path);
  overwrite(path, Math.floor(from * size), Math.floor((to - from) * size));
};

/** The first page holds the header and the schema. */
const PAGE = 4_096;
const SCHEMA_PAGES = 64;

type Damages = Readonly<Record<string, (path: string) => void>>;

/** The ways in which a disk, or somebody with a shell, makes a SQLite file useless. */
export const wholeDamages: Damages = {
  'truncated to nothing': (path) => truncateSync(path, 0),
  'cut off in the middle': (path) => truncateSync(path, statSync(path).size >> 1),
  'overwritten at its start': (path) => overwrite(path, 0, 100),
  'overwritten after its first page': (path) => overwrite(path, PAGE, statSync(path).size - PAGE),
  deleted: (path) => rmSync(path),
};

/** The first page of a table, of a file whose `-wal` is empty. */
const pageOf = (path: string, table: string): number => {
  const db = new DatabaseSync(path, { readOnly: true });
  const row = db.prepare('SELECT rootpage FROM sqlite_master WHERE name = ?').get(table);
  db.close();
  return Number(row?.['rootpage']);
};

/** Most of a large file, but not what is read of it first. */
export const insideDamages: Damages = {
  'from 60 % to 98 % of it': (path) => overwritePart(path, 0.6, 0.98),
  'all but its schema': (path) =>
    overwrite(path, SCHEMA_PAGES * PAGE, statSync(path).size - SCHEMA_PAGES * PAGE),
};

/** Those that leave its control state readable, so that only some reads find out. */
export const partialDamages: Damages = {
  'overwritten in one of its tables': (path) =>
    overwrite(path, (pageOf(path, 'docs_tenants') - 1) * PAGE, PAGE),
  'without one of its tables': (path) => {
    const db = new DatabaseSync(path);
    db.exec('DROP TABLE docs_tenants');
    db.close();
  },
};
