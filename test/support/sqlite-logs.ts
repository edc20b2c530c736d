import { DatabaseSync } from '@photostructure/sqlite';
import { join } from 'node:path';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { closeAfterwards } from './closing';
import { freshFolder } from './folders';

/** The log of a folder, closed after the test. */
export const openSqliteLog = async (
  folder = freshFolder(),
  streams = streamNames(),
  options: Parameters<typeof sqliteEventLog>[2] = {},
) => {
  const log = await sqliteEventLog(folder, streams, options);
  closeAfterwards(log.close);
  return log;
};

/** Works on the file of a log behind its back, as a tool or a careless operator would. */
export const inFile = <T>(folder: string, work: (db: InstanceType<typeof DatabaseSync>) => T): T => {
  const db = new DatabaseSync(join(folder, 'events.db'));
  try {
    return work(db);
  } finally {
    db.close();
  }
};

export const editLog = (folder: string, sql: string): void => inFile(folder, (db) => db.exec(sql));
