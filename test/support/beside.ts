import { randomUUID } from 'node:crypto';
import type { App } from '../../src/app/app';
import { operatorRequest } from '../../src/app/operator';
import { createApplication } from '../../src/domain/applications';
import { permissionsOf } from '../../src/domain/authority';
import type { ApplicationType } from '../../src/domain/permissions';
import { createTenant, type Decide } from '../../src/domain/tenant';
import type { EventLog, LoggedEvent, Position } from '../../src/event-log/event-log';
import type { Streams } from '../../src/event-log/streams';
import { newKey } from '../../src/ledger/api-key';
import { beforeTests } from './before-tests';
import { eventsOf } from './events';
import { openAppIn } from './profile';
import { commandJson, type Service } from './service';

export interface NewApplication {
  readonly id: string;
  readonly key: string;
  readonly keyId: string;
}

export type NewTenant = NewApplication & { readonly tenantId: string };

/**
 * What an operator does and sees beside a running server, on the same data folder: like another process to the server.
 */
export interface Beside {
  readonly log: EventLog;
  readonly streams: Streams;
  events(): Promise<readonly LoggedEvent[]>;
  count(): Promise<number>;
  tenantId(): Promise<string>;
  run<T = Record<string, string>>(...args: readonly string[]): Promise<T>;
  /** Executes a decision of the operator, without waiting for the read models to show it. */
  write(tenantId: string, decide: Decide): Promise<Position>;
  /** A tenant with a management Application that has these permissions, by default all on the tenant itself. */
  newTenant(name?: string, permissions?: readonly string[]): Promise<NewTenant>;
  /** A management Application with all permissions. */
  newOwner(tenantId: string): Promise<NewApplication>;
  newApplication(
    tenantId: string,
    type: ApplicationType,
    ...permissions: readonly string[]
  ): Promise<NewApplication>;
}

/** Every permission that a management Application may hold. */
export const ALL_PERMISSIONS = permissionsOf('management').map(({ type }) => type);
const OF_TENANT = ['tenant:read', 'tenant:update', 'tenant:delete'];

const NIL = '00000000-0000-0000-0000-000000000000';
const opened: App[] = [];

/** In an app of its own. */
export const operatorOf = (app: App): Omit<Beside, 'run'> => {
  const write = async (tenantId: string, decide: Decide): Promise<Position> => {
    const request = operatorRequest(tenantId, NIL, 20_000);
    return (await app.ledger.execute({ ...request, decide })).position;
  };
  const shown = async (position: Position): Promise<void> => {
    if (!(await app.catchUp(position, 20_000))) throw new Error(`The read models do not show ${position}.`);
  };
  const events = () => eventsOf(app.log.readAll());
  const newApplication: Beside['newApplication'] = async (tenantId, type, ...permissions) => {
    const id = randomUUID();
    const { key, input } = newKey(tenantId);
    const application = { applicationId: id, name: `A ${type} one`, type, permissions, key: input };
    await shown(await write(tenantId, createApplication(application)));
    return { id, key, keyId: input.keyId };
  };

  return {
    log: app.log,
    streams: app.streams,
    events,
    write,
    newApplication,
    newOwner: (tenantId) => newApplication(tenantId, 'management', ...ALL_PERMISSIONS),
    count: async () => (await events()).filter(({ type }) => type !== 'KeyUsed').length,
    tenantId: async () => app.streams.parse((await events())[0]!.stream)!.tenantId,
    newTenant: async (name = 'Another tenant', permissions = OF_TENANT) => {
      const tenantId = randomUUID();
      await write(tenantId, createTenant({ name, ownerId: NIL, includedMonthlyActiveTokens: 0 }));
      return { tenantId, ...(await newApplication(tenantId, 'management', ...permissions)) };
    },
  };
};

export const beside = async ({ folder }: Pick<Service, 'folder'>): Promise<Beside> => {
  const app = await openAppIn(folder);
  opened.push(app);
  return { ...operatorOf(app), run: (...args) => commandJson(args, { DATA_DIR: folder }) };
};

export const besideForTests = (service: Pick<Service, 'folder'>): Beside =>
  beforeTests(() => beside(service));

afterAll(async () => {
  for (const app of opened.splice(0)) await app.close();
});
