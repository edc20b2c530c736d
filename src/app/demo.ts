import { randomUUID } from 'node:crypto';
import { DAY_MS } from '../async/clock';
import type { Configuration } from '../configuration';
import { createApplication } from '../domain/applications';
import { partsOf, type EntityFactType } from '../domain/facts';
import { permissionsOf } from '../domain/permissions';
import { createTenant, type Decide } from '../domain/tenant';
import { encode } from '../event-log/codec';
import { codeOf } from '../fault';
import { newKey } from '../ledger/api-key';
import { uuidOfText } from '../uuid';
import type { App } from './app';
import { operatorRequest } from './operator';
import { TIMES } from '../times';

export const DEMO_NAME = 'Demo tenant';
const DAYS = 30;

/** What happens in a demo, and every how many days. The facts of a day are about the entities created on it. */
const demoFacts: readonly (readonly [EntityFactType, number])[] = [
  ['TokenCreated', 1],
  ['TokenRead', 2],
  ['TokenUsed', 4],
  ['CardCreated', 3],
  ['CardUsed', 3],
  ['BankCreated', 10],
  ['ProxyCreated', 15],
  ['ProxyUsed', 15],
  ['TokenDeleted', 7],
];

/** Few enough for one append. */
const factsUpTo = (now: number) =>
  Array.from({ length: DAYS }, (_, i) => DAYS - 1 - i).flatMap((day) =>
    demoFacts
      .filter(([, every]) => day % every === 0)
      .map(([type]) => ({
        type,
        data: {
          entityId: `${partsOf(type).entity.toLowerCase()}_${day}`,
          occurredAt: new Date(now - day * DAY_MS).toISOString(),
        },
      })),
  );

/** Creates a tenant, an Application that may do everything, and a month of facts. Returns the Application's key. */
export const createDemo = async (
  { ledger, log, streams }: App,
  tenantId: string,
  operator: string,
): Promise<{ readonly key: string; readonly facts: number }> => {
  const execute = (decide: Decide) =>
    ledger.execute({ ...operatorRequest(tenantId, operator, TIMES.backgroundMs), decide });
  const applicationId = randomUUID();
  const { key, input } = newKey(tenantId);
  await execute(createTenant({ name: DEMO_NAME, ownerId: operator, includedMonthlyActiveTokens: 50 }));
  await execute(
    createApplication({
      applicationId,
      name: 'Management',
      type: 'management',
      permissions: permissionsOf('management').map((permission) => permission.type),
      key: input,
    }),
  );
  const now = Date.now();
  const metadata = {
    at: new Date(now).toISOString(),
    actor: { type: 'application', id: applicationId },
  } as const;
  const facts = factsUpTo(now).map((fact) => encode(fact, metadata));
  await log.append(streams.activity(tenantId), facts, 'no_stream');
  return { key, facts: facts.length };
};

/** On an empty log, creates the demo unless `DEMO` is false, and returns its key. */
export const firstKey = async (
  app: App,
  { OPERATOR_ID, DEMO }: Configuration,
): Promise<string | undefined> => {
  if (!DEMO || (await app.log.head()) !== undefined) return undefined;
  // Derived from the log, so that only one of several concurrent first starts can create the tenant.
  const tenantId = uuidOfText(`first tenant of ${await app.log.identity()}`);
  try {
    return (await createDemo(app, tenantId, OPERATOR_ID)).key;
  } catch (error) {
    if (codeOf(error) === 'already_exists') return undefined;
    throw error;
  }
};
