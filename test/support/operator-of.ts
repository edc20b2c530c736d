import { randomUUID } from 'node:crypto';
import type { App } from '../../src/app/app';
import { operatorRequest } from '../../src/app/operator';
import { createApplication } from '../../src/domain/applications';
import { permissionsOf } from '../../src/domain/authority';
import type { ApplicationType } from '../../src/domain/permissions';
import { createTenant, type Decide } from '../../src/domain/tenant';
import type { Position } from '../../src/event-log/event-log';
import { newKey } from '../../src/ledger/api-key';

export interface NewApplication {
  readonly id: string;
  readonly key: string;
  readonly keyId: string;
}

export type NewTenant = NewApplication & { readonly tenantId: string };

/** Every permission that a management Application may hold. */
export const ALL_PERMISSIONS = permissionsOf('management').map(({ type }) => type);

const NIL = '00000000-0000-0000-0000-000000000000';

/** What the operator decides with an app, beside whatever else uses its stores. */
export const operatorOf = (app: App) => {
  /** Executes a decision, without waiting for the read models to show it. */
  const write = async (tenantId: string, decide: Decide): Promise<Position> => {
    const request = operatorRequest(tenantId, NIL, 20_000);
    return (await app.ledger.execute({ ...request, decide })).position;
  };
  /** A tenant without Applications. */
  const newTenant = async (tenantId = randomUUID(), name = 'Another tenant'): Promise<string> => {
    await write(tenantId, createTenant({ name, ownerId: NIL, includedMonthlyActiveTokens: 0 }));
    return tenantId;
  };
  const newApplication = async (
    tenantId: string,
    type: ApplicationType,
    ...permissions: readonly string[]
  ): Promise<NewApplication> => {
    const id = randomUUID();
    const { key, input } = newKey(tenantId);
    const application = { applicationId: id, name: `A ${type} one`, type, permissions, key: input };
    const position = await write(tenantId, createApplication(application));
    if (!(await app.catchUp(position, 20_000))) throw new Error(`The read models do not show ${position}.`);
    return { id, key, keyId: input.keyId };
  };
  /** A management Application with all permissions. */
  const newOwner = (tenantId: string): Promise<NewApplication> =>
    newApplication(tenantId, 'management', ...ALL_PERMISSIONS);
  return { write, newTenant, newApplication, newOwner };
};
