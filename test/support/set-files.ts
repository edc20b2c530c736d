import { DatabaseSync } from '@photostructure/sqlite';
import { join } from 'node:path';
import { projector } from '../../src/app/adapters';

const valueIn = (path: string, sql: string, ...values: readonly string[]): string => {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  const row = db.prepare(sql).get(...values) ?? {};
  db.close();
  return String(Object.values(row)[0]);
};

/** The id of the live set in a data folder: at the end of the chain that begins at the root. */
export const liveSetId = (folder: string): string => {
  const root = join(folder, 'read-models', 'root.db');
  let id = valueIn(root, 'SELECT id FROM roots WHERE version = ?', projector.version);
  for (;;) {
    const control = JSON.parse(valueIn(fileOfSet(folder, id), 'SELECT state FROM control')) as {
      next?: string;
    };
    if (control.next === undefined) return id;
    id = control.next;
  }
};

const fileOfSet = (folder: string, id: string): string =>
  join(folder, 'read-models', `set-${projector.version}-${id}.db`);

export const liveSetFile = (folder: string): string => fileOfSet(folder, liveSetId(folder));
