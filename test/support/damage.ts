import { closeSync, openSync, rmSync, statSync, truncateSync, writeSync } from 'node:fs';
import { DatabaseSync } from '@photostructure/sqlite';

const overwrite = (path: string, from: number, bytes: number): void => {
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(bytes, 0xab), 0, bytes, from);
  closeSync(file);
};

/** The first page holds the header and the schema. */
const PAGE = 4_096;

/** The ways in which a disk, or somebody with a shell, damages a SQLite file. */
export const fileDamages: Readonly<Record<string, (path: string, table: string) => void>> = {
  'truncated to nothing': (path) => truncateSync(path, 0),
  'cut off in the middle': (path) => truncateSync(path, statSync(path).size >> 1),
  'overwritten at its start': (path) => overwrite(path, 0, 100),
  'overwritten after its first page': (path) => overwrite(path, PAGE, statSync(path).size - PAGE),
  'without one of its tables': (path, table) => {
    const db = new DatabaseSync(path);
    db.exec(`DROP TABLE ${table}`);
    db.close();
  },
  deleted: (path) => rmSync(path),
};
