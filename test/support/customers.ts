import type { LoggedEvent } from '../../src/event-log/event-log';
import type { Beside } from './beside';
import { reportFacts, type Fact } from './reported-facts';
import { ask, type Answered, type Asking } from './http';
import type { Service } from './service';
import { until } from './waiting';

/** A tenant with a key that may read its logs and its usage. */
export interface Customer {
  readonly tenantId: string;
  readonly key: string;
  readonly applicationId: string;
  /** `GET /logs`. */
  get(query?: string, more?: Asking): Promise<Answered>;
  /** Puts facts into the log and waits until they are shown. Gives their ids. */
  report(...facts: readonly Fact[]): Promise<readonly string[]>;
  /** What the raw log has of this tenant, newest first. */
  raw(): Promise<readonly LoggedEvent[]>;
}

export const idsOf = ({ json }: Answered): readonly string[] =>
  json.data.map((row: { id: string }) => row.id);

export const customerOf = async (service: () => Service, by: Beside): Promise<Customer> => {
  const { tenantId } = await by.newTenant();
  const permissions = ['log:read', 'report:read', 'tenant:update'];
  const { key, id } = await by.newApplication(tenantId, 'management', ...permissions);
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
      return ids;
    },
  };
};
