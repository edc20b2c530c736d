import { DatabaseSync } from '@photostructure/sqlite';
import { appendFileSync } from 'node:fs';
import { basename } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { hookSqlite } from './hooked-sqlite';

/** A statement that a process executed. */
export interface Executed {
  /** The one that answers requests, or the one that appends and projects. */
  readonly thread: 'main' | 'worker';
  /** The name of the database file. */
  readonly file: string;
  readonly sql: string;
  /** For a commit: `PRAGMA synchronous` of its connection at that moment. */
  readonly synchronous?: number;
}

/** The settings of a process that is to write all statements of all its threads to a file. */
export const tracedInto = (file: string) => ({ NODE_OPTIONS: `--require ${__filename}`, SQLITE_TRACE: file });

const { prepare } = DatabaseSync.prototype;

/** Node loads this file into each thread of a process that is traced. */
const traceInto = (trace: string): void =>
  hookSqlite((db, sql) => {
    const row = sql === 'COMMIT' ? prepare.call(db, 'PRAGMA synchronous').get() : undefined;
    const executed: Executed = {
      thread: isMainThread ? 'main' : 'worker',
      file: basename(db.location() ?? ''),
      sql,
      ...(row === undefined ? {} : { synchronous: Number(row['synchronous']) }),
    };
    appendFileSync(trace, `${JSON.stringify(executed)}\n`);
  });

const trace = process.env['SQLITE_TRACE'];
if (trace !== undefined) traceInto(trace);
