import { DatabaseSync } from '@photostructure/sqlite';
import { appendFileSync } from 'node:fs';
import { basename } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { hookSqlite } from './hooked-sqlite';

export interface Executed {
  /** The one that answers requests, or the one that appends and projects. */
  readonly thread: 'main' | 'worker';
  readonly file: string;
  readonly sql: string;
  /** For a commit: `PRAGMA synchronous` of its connection at that moment. */
  readonly synchronous?: number;
}

export const tracedInto = (file: string) => ({ NODE_OPTIONS: `--require ${__filename}`, SQLITE_TRACE: file });

const { prepare } = DatabaseSync.prototype;

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
