import { findLogs } from '../../projections/log-pages';
import type { LogRow } from '../../projections/logs';
import { reportUsage } from '../../projections/usage';
import type { App } from '../../src/app/app';
import { deleteTenant } from '../../src/domain/tenant';
import { operatorOf } from './operator-of';
import { openAppIn } from './profile';

/** The app on a folder, as any process opens it, and what its read models show now, whoever projected them. */
export interface Readings {
  readonly app: App;
  newTenant(tenantId?: string): Promise<string>;
  deleteTenant(tenantId: string): Promise<void>;
  usage(tenantId: string): ReturnType<typeof reportUsage>;
  /** All rows of a tenant's log, newest first; their number must equal the total. */
  logs(tenantId: string): Promise<readonly LogRow[]>;
  /** Closes it before the end of the test file, if something else needs the folder to itself. */
  close(): Promise<void>;
}

const opened = new Set<App>();
const ALL = 1_000_000;

export const readingsOf = async (folder: string): Promise<Readings> => {
  const app = await openAppIn(folder);
  opened.add(app);
  const { write, newTenant } = operatorOf(app);
  return {
    app,
    newTenant,
    deleteTenant: async (tenantId) => void (await write(tenantId, deleteTenant())),
    usage: async (tenantId) =>
      reportUsage((await app.live.look()).set, tenantId, new Date().toISOString().slice(0, 7)),
    logs: async (tenantId) => {
      const question = { filter: {}, page: 1, size: ALL };
      const { rows, total } = await findLogs((await app.live.look()).set, tenantId, question);
      if (rows.length !== total) throw new Error(`The log has ${rows.length} rows and says ${total}.`);
      return rows;
    },
    close: async () => {
      opened.delete(app);
      await app.close();
    },
  };
};

afterAll(async () => {
  for (const app of opened) await app.close();
});
