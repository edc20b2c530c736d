import { randomUUID } from 'node:crypto';
import type { LoggedEvent } from '../../src/event-log/event-log';
import { newKey } from '../../src/ledger/api-key';
import type { Beside } from './beside';
import { ask, type ApiResponse, type AskOptions } from './http';
import { reportFacts, type Fact } from './reported-facts';
import { allProjected, type Service } from './service';
import { until } from './waiting';

export interface Customer {
  readonly tenantId: string;
  readonly key: string;
  readonly applicationId: string;
  get(query?: string, more?: AskOptions): Promise<ApiResponse>;
  /** Appends facts to the log and waits until they are shown. Returns their ids. */
  report(...facts: readonly Fact[]): Promise<readonly string[]>;
  /** The events of this tenant in the raw log, newest first. */
  raw(): Promise<readonly LoggedEvent[]>;
}

export const idsOf = ({ json }: ApiResponse): readonly string[] =>
  json.data.map((row: { id: string }) => row.id);

const PERMISSIONS = ['log:read', 'report:read', 'tenant:read', 'tenant:update'];

/** Its events are in the log as recorded at an earlier time. */
const madeAt = async ({ log, streams }: Beside, since: string) => {
  const recordedAt = new Date(since).toISOString();
  const [tenantId, id] = [randomUUID(), randomUUID()];
  const { key, input } = newKey(tenantId);
  const settings = { fingerprintTokens: false, deduplicateTokens: false };
  const application = {
    applicationId: id,
    name: 'A',
    applicationType: 'management',
    permissions: PERMISSIONS,
  };
  const events = [
    { type: 'TenantCreated', data: { name: 'T', ownerId: id, settings, includedMonthlyActiveTokens: 0 } },
    { type: 'ApplicationCreated', data: application },
    { type: 'KeyAdded', data: { keyId: input.keyId, applicationId: id, digest: input.digest } },
  ].map((event) => ({ id: randomUUID(), ...event, metadata: { version: 1, at: recordedAt }, recordedAt }));
  await log.append(streams.tenant(tenantId), events, 'no_stream', 20_000);
  return { tenantId, key, id };
};

/** With a time, later events of the customer may be recorded at any time from then on. */
export const customerOf = async (service: () => Service, by: Beside, since?: string): Promise<Customer> => {
  const { tenantId, key, id } = await (since === undefined
    ? by.newTenant('Acme', PERMISSIONS)
    : madeAt(by, since));
  const get: Customer['get'] = (query = '', more = {}) =>
    ask(`${service().url}/logs${query}`, { key, ...more });
  const total = async (): Promise<number> => (await get()).json.pagination.total_items;
  if (since !== undefined) await allProjected(service());
  return {
    tenantId,
    key,
    applicationId: id,
    get,
    raw: async () => (await by.events()).filter(({ stream }) => stream.endsWith(tenantId)).toReversed(),
    report: async (...facts) => {
      const before = await total();
      const ids = await reportFacts(service().folder, tenantId, facts);
      await until(async () => (await total()) === before + facts.length);
      await allProjected(service());
      return ids;
    },
  };
};
