import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import type { App } from '../src/app/app';
import type { EventLog, NewEvent } from '../src/event-log/event-log';
import { appendFacts } from './facts';
import { MAIN, type Environment } from './processes';

/** Logs that are made by the adapters of the build that is measured, because builds may store them differently. */

export interface Customer {
  readonly tenantId: string;
  readonly key: string;
}

const event = (type: string, data: NewEvent['data']): NewEvent => ({
  id: randomUUID(),
  type,
  data,
  metadata: { version: 1 },
});

type Modules = typeof import('../src/event-log/sqlite/sqlite-event-log') &
  typeof import('../src/event-log/eventstoredb/eventstoredb-event-log') &
  typeof import('../src/event-log/streams') &
  typeof import('../src/ledger/api-key');

const MODULES = [
  'event-log/sqlite/sqlite-event-log',
  'event-log/eventstoredb/eventstoredb-event-log',
  'event-log/streams',
  'ledger/api-key',
];

const modulesOf = (main: string): Modules =>
  Object.assign(
    {},
    ...MODULES.map((name) => require(join(dirname(main), '..', `${name}.js`)) as object),
  ) as Modules;

const firstEvents = (applicationId: string, digest: string): readonly NewEvent[] => {
  const settings = { fingerprintTokens: false, deduplicateTokens: false };
  const permissions = ['tenant:read', 'tenant:update', 'log:read'];
  return [
    event('TenantCreated', {
      name: 'Bench',
      ownerId: randomUUID(),
      settings,
      includedMonthlyActiveTokens: 0,
    }),
    event('ApplicationCreated', { applicationId, name: 'Bench', applicationType: 'management', permissions }),
    event('KeyAdded', { keyId: randomUUID(), applicationId, digest }),
  ];
};

const openLog = (
  { sqliteEventLog, eventStoreDbEventLog, streamNames }: Modules,
  { DATA_DIR = '', EVENTSTORE_URL: url, STREAM_PREFIX }: Environment,
): Promise<EventLog> => {
  const streams = streamNames(STREAM_PREFIX);
  if (url === undefined) return sqliteEventLog(DATA_DIR, streams);
  return eventStoreDbEventLog(url, streams, { waitMs: 10_000, onError: (what) => console.log(what) });
};

/** The log of a place, opened by the adapters of a build. */
export const openLogOf = async (env: Environment, main = MAIN): Promise<Pick<App, 'log' | 'streams'>> => {
  const modules = modulesOf(main);
  return { log: await openLog(modules, env), streams: modules.streamNames(env['STREAM_PREFIX']) };
};

/** Makes a log with tenants that have one Application each, and with facts about the first ten of them. */
export const makeLog = async (
  env: Environment,
  { tenants, facts = 0 }: { readonly tenants: number; readonly facts?: number },
  main = MAIN,
): Promise<readonly Customer[]> => {
  const { makeKey, digestOf } = modulesOf(main);
  const { log, streams } = await openLogOf(env, main);
  const customers = await Promise.all(
    Array.from({ length: tenants }, async () => {
      const tenantId = randomUUID();
      const key = makeKey(tenantId);
      const events = firstEvents(randomUUID(), digestOf(key));
      await log.append(streams.tenant(tenantId), events, 'no_stream', 20_000);
      return { tenantId, key };
    }),
  );
  if (facts > 0)
    await appendFacts(
      { log, streams },
      facts,
      customers.slice(0, 10).map(({ tenantId }) => tenantId),
    );
  await log.close();
  return customers;
};
