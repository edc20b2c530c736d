import type { EventLog, LoggedEvent } from '../../src/event-log/event-log';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { commandJson, type Service } from './service';

/** What an operator does and sees beside a running server, on the same folder. */
export interface Beside {
  readonly log: EventLog;
  events(): Promise<readonly LoggedEvent[]>;
  count(): Promise<number>;
  tenantId(): Promise<string>;
  run<T = Record<string, string>>(...args: readonly string[]): Promise<T>;
  newTenant(name?: string): Promise<NewApplication & { tenantId: string }>;
  newApplication(tenantId: string, type: string, ...permissions: readonly string[]): Promise<NewApplication>;
}

export interface NewApplication {
  readonly id: string;
  readonly key: string;
  readonly keyId: string;
}

const opened: EventLog[] = [];

export const beside = async ({ folder }: Pick<Service, 'folder'>): Promise<Beside> => {
  const log = await sqliteEventLog(folder, streamNames());
  opened.push(log);
  const run = <T>(...args: readonly string[]): Promise<T> => commandJson<T>(args, { DATA_DIR: folder });
  const events = async (): Promise<readonly LoggedEvent[]> => {
    const all: LoggedEvent[] = [];
    for await (const batch of log.readAll()) all.push(...batch);
    return all;
  };
  const newApplication = async (tenant: string, type: string, ...permissions: readonly string[]) => {
    const wanted = permissions.flatMap((permission) => ['--permission', permission]);
    const made = await run<Record<string, string>>(
      ...['application', 'create', '--tenant', tenant, '--name', `A ${type} one`, '--type', type, ...wanted],
    );
    return { id: made['application_id']!, key: made['key']!, keyId: made['key_id']! };
  };
  return {
    log,
    run,
    events,
    newApplication,
    count: async () => (await events()).length,
    tenantId: async () => (await events())[0]!.stream.replace('tenant-', ''),
    newTenant: async (name = 'Another tenant') => {
      const { tenant_id: tenantId } = await run<{ tenant_id: string }>('tenant', 'create', '--name', name);
      const all = ['tenant:read', 'tenant:update', 'tenant:delete'];
      return { tenantId, ...(await newApplication(tenantId, 'management', ...all)) };
    },
  };
};

afterAll(async () => {
  for (const log of opened.splice(0)) await log.close();
});
