import { randomUUID } from 'node:crypto';
import type { Configuration } from '../configuration';
import { createApplication } from '../domain/applications';
import { permissionsOf } from '../domain/authority';
import { factPartsOf, type Actor, type EntityFactType } from '../domain/events';
import { createTenant, updateTenant, type Decide } from '../domain/tenant';
import { DAY_MS } from '../domain/texts';
import { encode } from '../event-log/codec';
import { type EventLog, type NewEvent, uuidOfText } from '../event-log/event-log';
import { codeOf } from '../fault';
import { newKey } from '../ledger/api-key';
import { cachedFolds } from '../ledger/folds';
import { ledger } from '../ledger/ledger';
import { TIMES } from '../times';
import type { App } from './app';
import { operatorRequest } from './operator';

export const DEMO_NAME = 'Demo tenant';
const DAYS = 30;
const MINUTES_APART = 7;
/** So long ago a setting was changed: a week ago it was another one. */
const CHANGED_DAYS = 5;

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

/** Every few minutes before this time of each day, the oldest first. Few enough for one append. */
const factsUpTo = (now: number, actor: Actor): readonly NewEvent[] =>
  Array.from({ length: DAYS }, (_, i) => DAYS - 1 - i).flatMap((day) =>
    demoFacts
      .filter(([, every]) => day % every === 0)
      .map(([type], i, { length }) => {
        const entityId = `${factPartsOf(type).entity.toLowerCase()}_${day}`;
        const at = new Date(now - day * DAY_MS - (length - i) * MINUTES_APART * 60_000).toISOString();
        return encode({ type, data: { entityId } }, { at, actor });
      }),
  );

/** A log that records events at their own times, as a copy does. */
const inThePast = (log: EventLog): EventLog => ({
  ...log,
  append: (stream, events, expected, withinMs = TIMES.backgroundMs) => {
    const recorded = events.map((event) => ({ ...event, recordedAt: String(event.metadata['at']) }));
    return log.append(stream, recorded, expected, withinMs);
  },
});

/**
 * Creates a tenant with an Application that may do everything, and a month of its history, in order: as if all of it had
 * been recorded when it happened. Returns the Application's key.
 */
export const createDemo = async (app: App, tenantId: string, operator: string) => {
  const past = { log: inThePast(app.log), streams: app.streams };
  const { execute } = ledger({ ...past, folds: cachedFolds(past, { withoutLogMs: 0 }) });
  const now = Date.now();
  const at = new Date(now - DAYS * DAY_MS).toISOString();
  const request = operatorRequest(tenantId, operator, TIMES.backgroundMs);
  const decided = (decide: Decide) => execute({ ...request, at, decide });
  const applicationId = randomUUID();
  const { key, input } = newKey(tenantId);
  const permissions = permissionsOf('management').map((permission) => permission.type);
  const management = { applicationId, name: 'Management', type: 'management', permissions } as const;
  await decided(createTenant({ name: DEMO_NAME, ownerId: operator, includedMonthlyActiveTokens: 50 }));
  await decided(createApplication({ ...management, key: input }));
  const facts = factsUpTo(now, { type: 'application', id: applicationId });
  const changedAt = new Date(now - CHANGED_DAYS * DAY_MS).toISOString();
  const earlier = facts.filter(({ metadata }) => String(metadata['at']) < changedAt);
  await past.log.append(past.streams.activity(tenantId), earlier, 'no_stream');
  const caller = { kind: 'key', digest: input.digest, applicationId } as const;
  const decide = updateTenant({ name: DEMO_NAME, settings: { fingerprintTokens: true } });
  await execute({ ...request, caller, at: changedAt, decide });
  const later = facts.slice(earlier.length);
  await past.log.append(past.streams.activity(tenantId), later, earlier.length - 1);
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
