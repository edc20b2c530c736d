import type { LoggedEvent } from '../../src/event-log/event-log';
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

export const customerOf = async (service: () => Service, by: Beside): Promise<Customer> => {
  const { tenantId, key, id } = await by.newTenant('Acme', PERMISSIONS);
  const get: Customer['get'] = (query = '', more = {}) =>
    ask(`${service().url}/logs${query}`, { key, ...more });
  const total = async (): Promise<number> => (await get()).json.pagination.total_items;
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
