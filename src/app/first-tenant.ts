import { createHash, randomUUID } from 'node:crypto';
import { BACKGROUND_MS, DAY_MS } from '../async/clock';
import type { Configuration } from '../configuration';
import { createApplication } from '../domain/applications';
import type { EntityFactType } from '../domain/facts';
import { permissionsOf } from '../domain/permissions';
import { createTenant, type Decide } from '../domain/tenant';
import { encode } from '../event-log/codec';
import { codeOf } from '../fault';
import { newKey } from '../ledger/new-key';
import type { App } from './app';
import { operatorRequest } from './operator';

/** Sample data for the logs and the usage report: the fact, its entity and how many hours ago it happened. */
const demoFacts: readonly (readonly [EntityFactType, string, number])[] = [
  ['TokenCreated', 'tok_demo_1', 48],
  ['TokenCreated', 'tok_demo_2', 47],
  ['CardCreated', 'card_demo_1', 40],
  ['BankCreated', 'bank_demo_1', 36],
  ['TokenRead', 'tok_demo_1', 30],
  ['ProxyCreated', 'proxy_demo_1', 24],
  ['CardUsed', 'card_demo_1', 12],
  ['TokenUpdated', 'tok_demo_2', 6],
  ['TokenCreated', 'tok_demo_3', 4],
  ['TokenDeleted', 'tok_demo_2', 2],
  ['CardRead', 'card_demo_1', 1],
];

const addDemoFacts = async ({ log, streams }: App, tenantId: string): Promise<void> => {
  const now = Date.now();
  const at = new Date(now).toISOString();
  const events = demoFacts.map(([type, entityId, hoursAgo]) => {
    const occurredAt = new Date(now - hoursAgo * (DAY_MS / 24)).toISOString();
    return encode({ type, data: { entityId, occurredAt } }, { at });
  });
  await log.append(streams.activity(tenantId), events, 'no_stream');
};

/** Derived from the log, so that only one of several concurrent first starts can create the tenant. */
const firstTenantId = (logIdentity: string): string =>
  createHash('sha256')
    .update(`first tenant of ${logIdentity}`)
    .digest('hex')
    .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-4$3-8$4-$5');

const makeFirstTenant = async (app: App, operator: string): Promise<string> => {
  const tenantId = firstTenantId(await app.log.identity());
  const execute = (decide: Decide) =>
    app.ledger.execute({ ...operatorRequest(tenantId, operator, BACKGROUND_MS), decide });
  const { key, input } = newKey(tenantId);
  await execute(createTenant({ name: 'First tenant', ownerId: operator, includedMonthlyActiveTokens: 0 }));
  await execute(
    createApplication({
      applicationId: randomUUID(),
      name: 'Management',
      type: 'management',
      permissions: permissionsOf('management').map((permission) => permission.type),
      key: input,
    }),
  );
  await addDemoFacts(app, tenantId);
  return key;
};

/**
 * On an empty log, creates a tenant with a management Application, unless `DEMO` is false. Returns the Application's key.
 * Undefined: nothing was created.
 */
export const firstKey = async (
  app: App,
  { OPERATOR_ID, DEMO }: Configuration,
): Promise<string | undefined> => {
  if (!DEMO || (await app.log.head()) !== undefined) return undefined;
  return makeFirstTenant(app, OPERATOR_ID).catch((error: unknown) => {
    if (codeOf(error) === 'tenant_exists') return undefined;
    throw error;
  });
};
