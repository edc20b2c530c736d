import * as driver from '@photostructure/sqlite';
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite';
import { appendFileSync } from 'node:fs';
import { basename } from 'node:path';
import { isMainThread } from 'node:worker_threads';

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
export const tracedInto = (file: string) => ({
  NODE_OPTIONS: `--require ${__filename}`,
  SQLITE_TRACE: file,
});

const EXECUTING = ['get', 'all', 'run', 'iterate'] as const;

/** Node loads this file into each thread of a process that is traced. Methods of the driver cannot be replaced, so its class is. */
const traceInto = (trace: string): void => {
  const record = (db: DatabaseSyncInstance, sql: string, more: Partial<Executed> = {}): void => {
    const thread = isMainThread ? 'main' : 'worker';
    const executed: Executed = { thread, file: basename(db.location() ?? ''), sql, ...more };
    appendFileSync(trace, `${JSON.stringify(executed)}\n`);
  };
  class TracedDatabase extends driver.DatabaseSync {
    override exec(sql: string): void {
      const row = sql === 'COMMIT' ? super.prepare('PRAGMA synchronous').get() : undefined;
      record(this, sql, row === undefined ? {} : { synchronous: Number(row['synchronous']) });
      super.exec(sql);
    }
    override prepare(...given: Parameters<DatabaseSyncInstance['prepare']>): StatementSyncInstance {
      const statement = super.prepare(...given);
      for (const name of EXECUTING) {
        const execute = statement[name].bind(statement) as (...values: unknown[]) => unknown;
        const value = (...values: unknown[]): unknown => {
          record(this, given[0]);
          return execute(...values);
        };
        Object.defineProperty(statement, name, { value });
      }
      return statement;
    }
  }
  const loaded = require.cache[require.resolve('@photostructure/sqlite')];
  if (loaded !== undefined) loaded.exports = { ...driver, DatabaseSync: TracedDatabase };
};

const trace = process.env['SQLITE_TRACE'];
if (trace !== undefined) traceInto(trace);
