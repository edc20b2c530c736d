import * as driver from '@photostructure/sqlite';
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite';

/** Called before a statement is executed. */
type Hook = (db: DatabaseSyncInstance, sql: string) => void;

const EXECUTING = ['get', 'all', 'run', 'iterate'] as const;

export const hookSqlite = (hook: Hook): void => {
  class HookedDatabase extends driver.DatabaseSync {
    override exec(sql: string): void {
      hook(this, sql);
      super.exec(sql);
    }
    override prepare(...given: Parameters<DatabaseSyncInstance['prepare']>): StatementSyncInstance {
      const statement = super.prepare(...given);
      for (const name of EXECUTING) {
        const execute = statement[name].bind(statement) as (...values: unknown[]) => unknown;
        const value = (...values: unknown[]): unknown => {
          hook(this, given[0]);
          return execute(...values);
        };
        Object.defineProperty(statement, name, { value });
      }
      return statement;
    }
  }
  const loaded = require.cache[require.resolve('@photostructure/sqlite')];
  if (loaded !== undefined) loaded.exports = { ...driver, DatabaseSync: HookedDatabase };
};
