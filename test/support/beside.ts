import type { App } from '../../src/app/app';
import type { EventLog, LoggedEvent } from '../../src/event-log/event-log';
import type { Streams } from '../../src/event-log/streams';
import { beforeTests } from './before-tests';
import { eventsOf } from './events';
import { operatorOf, type NewTenant } from './operator-of';
import { openAppIn } from './profile';
import { commandJson, type Service } from './service';

export { ALL_PERMISSIONS, type NewApplication, type NewTenant } from './operator-of';

/**
 * What an operator does and sees beside a running server, on the same data folder: like another process to the server.
 */
export interface Beside extends Omit<ReturnType<typeof operatorOf>, 'newTenant'> {
  readonly log: EventLog;
  readonly streams: Streams;
  events(): Promise<readonly LoggedEvent[]>;
  count(): Promise<number>;
  tenantId(): Promise<string>;
  run<T = Record<string, string>>(...args: readonly string[]): Promise<T>;
  /** A tenant with a management Application that has these permissions, by default all on the tenant itself. */
  newTenant(name?: string, permissions?: readonly string[]): Promise<NewTenant>;
}

const OF_TENANT = ['tenant:read', 'tenant:update', 'tenant:delete'];

const opened: App[] = [];

export const beside = async ({ folder }: Pick<Service, 'folder'>): Promise<Beside> => {
  const app = await openAppIn(folder);
  opened.push(app);
  const { newTenant, ...operator } = operatorOf(app);
  const events = () => eventsOf(app.log.readAll());
  return {
    ...operator,
    log: app.log,
    streams: app.streams,
    events,
    run: (...args) => commandJson(args, { DATA_DIR: folder }),
    count: async () => (await events()).filter(({ type }) => type !== 'KeyUsed').length,
    tenantId: async () => app.streams.parse((await events())[0]!.stream)!.tenantId,
    newTenant: async (name, permissions = OF_TENANT) => {
      const tenantId = await newTenant(undefined, name);
      return { tenantId, ...(await operator.newApplication(tenantId, 'management', ...permissions)) };
    },
  };
};

export const besideForTests = (service: Pick<Service, 'folder'>): Beside =>
  beforeTests(() => beside(service));

afterAll(async () => {
  for (const app of opened.splice(0)) await app.close();
});
