import { DatabaseSync } from '@photostructure/sqlite';
import { join } from 'node:path';
import { diagnose } from '../../src/app/doctor';
import { makeMetrics } from '../../src/app/metrics';
import { ledgerStatus } from '../../src/app/status';
import * as database from '../../src/sqlite/database';
import type { Database } from '../../src/sqlite/database';
import { freshFolder } from '../support/folders';
import { EMBEDDED, openAppIn } from '../support/profile';
import { operatorAt } from '../support/operator';

interface Asked {
  readonly path: string;
  readonly sql: string;
}

/** Reports the statements that a connection runs. Those that are only prepared do not count. */
const observed = (db: Database, path: string, onRun: (asked: Asked) => void): Database => {
  const prepare = (sql: string) => {
    const statement = Object.getPrototypeOf(db).prepare.call(db, sql) as ReturnType<Database['prepare']>;
    for (const name of ['get', 'all', 'iterate'] as const) {
      const run = statement[name].bind(statement) as (...values: readonly unknown[]) => unknown;
      const running = (...values: readonly unknown[]): unknown => {
        onRun({ path, sql });
        return run(...values);
      };
      Object.defineProperty(statement, name, { value: running });
    }
    return statement;
  };
  return Object.defineProperty(db, 'prepare', { value: prepare });
};

/** The statements that this thread runs, each once. */
const statementsOf = async (work: () => Promise<unknown>): Promise<readonly Asked[]> => {
  const asked = new Map<string, Asked>();
  const { openForReading } = database;
  const opening = jest
    .spyOn(database, 'openForReading')
    .mockImplementation((path) =>
      observed(openForReading(path), path, (one) => asked.set(`${path} ${one.sql}`, one)),
    );
  try {
    await work();
  } finally {
    opening.mockRestore();
  }
  return [...asked.values()];
};

/** These read a bounded number of rows from one end, or grow with the number of parked tenants only. */
const isBounded = (sql: string): boolean =>
  /^SELECT [\w, ]+ FROM events ORDER BY position DESC LIMIT [0-9]+$/.test(sql) ||
  / FROM docs_parked d /.test(sql);

/** Tables with a few rows at most, whatever is in the log. */
const SMALL =
  /^SCAN (CONSTANT ROW|sqlite_master|sqlite_schema|meta|control|generations|leases|retries|pragma_\w+)\b/;

const scansOf = ({ path, sql }: Asked): readonly string[] => {
  if (isBounded(sql) || /^\s*PRAGMA/i.test(sql)) return [];
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return db
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map((row) => (row as { detail: string }).detail)
      .filter((detail) => detail.startsWith('SCAN ') && !SMALL.test(detail))
      .map((detail) => `${detail}: ${sql}`);
  } finally {
    db.close();
  }
};

describe('the cost of asking for the state', () => {
  const folder = freshFolder();
  beforeAll(async () => {
    await operatorAt(folder, EMBEDDED).json('tenant create --name Acme');
  });

  it.each<[string, () => Promise<unknown>]>([
    ['doctor', () => diagnose({ DATA_DIR: folder, ...EMBEDDED })],
    [
      'status and /readyz',
      async () => {
        const app = await openAppIn(folder, EMBEDDED);
        await ledgerStatus(app);
        await app.close();
      },
    ],
    [
      '/metrics',
      async () => {
        const app = await openAppIn(folder, EMBEDDED);
        const dependencies = { app: () => app, isReady: () => true, backupAge: () => undefined };
        await makeMetrics({
          ...dependencies,
          limits: () => undefined,
        }).text();
        await app.close();
      },
    ],
  ])('of %s does not grow with the log or the read models', async (_, work) => {
    const asked = await statementsOf(work);
    expect(asked.map(({ path }) => path)).toContain(join(folder, 'events.db'));
    expect(asked.some(({ path }) => path.includes('read-models'))).toBe(true);
    expect(asked.flatMap(scansOf)).toEqual([]);
  });
});
