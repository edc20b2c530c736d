import type { Reader } from '../../projections/projector';
import { PARKED, type DocumentKey, type Scanner } from '../read-models/read-models';
import { documentsOf } from '../read-models/scanning';

/** Why a tenant is parked in one projection, and where it resumes. */
export interface ParkedTenant {
  readonly tenant_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly position: string;
  /** When that event was recorded. Everything before it has been applied. */
  readonly recorded_at: string;
  /** Everything of the tenant up to here has been applied. Undefined: nothing has. */
  readonly after?: string;
  /** The event itself is bad, or events are missing before it. */
  readonly cause: 'bad_event' | 'missing_events';
  readonly reason: string;
  readonly since: string;
  /** The version of the program that failed. Another version retries automatically. */
  readonly program: string;
}

/** The only key per tenant: a projection parks a tenant at one event at a time. */
export const PARKED_KEY = 'tenant';

export const parkedKey = (tenantId: string): DocumentKey => ({
  tenantId,
  collection: PARKED,
  key: PARKED_KEY,
});

/** Why this tenant is parked in a read model, if it is. */
export const findParked = async (
  reader: Pick<Reader, 'get'>,
  tenantId: string,
): Promise<ParkedTenant | undefined> => {
  const { collection, key } = parkedKey(tenantId);
  return (await reader.get(tenantId, collection, key)) as unknown as ParkedTenant | undefined;
};

export const parkedTenants = (generation: Scanner): AsyncIterable<ParkedTenant> =>
  documentsOf(generation, PARKED);
