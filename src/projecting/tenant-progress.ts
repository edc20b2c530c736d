import type { Reader } from '../../projections/projector';
import type { StreamKind } from '../domain/events';
import { PARKED, STREAMS, rowsOf, type DocumentKey, type ReadModelSet } from '../read-models/read-models';

/** Why a tenant is parked in a set, and where it resumes. */
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

/** One per tenant: a set parks a tenant at one event at a time. */
export const parkedKey = (tenantId: string): DocumentKey => ({ tenantId, collection: PARKED, key: 'tenant' });

/** Why this tenant is parked, if it is. There is no need to ask while `parked` is 0 in the control state. */
export const findParked = async (
  reader: Pick<Reader, 'get'>,
  tenantId: string,
): Promise<ParkedTenant | undefined> =>
  (await reader.get(tenantId, PARKED, parkedKey(tenantId).key)) as unknown as ParkedTenant | undefined;

/** All parked tenants, ordered by their ids. */
export async function* parkedTenants(set: Pick<ReadModelSet, 'scan'>): AsyncGenerator<ParkedTenant> {
  for await (const { text } of rowsOf(set, PARKED)) yield JSON.parse(text) as ParkedTenant;
}

/** How much of a tenant's stream a set has applied. Its key is the stream kind. */
export interface StreamDocument {
  readonly revision: number;
}

/** The last revision of a tenant's stream that a set has applied, or -1. */
export const lastRevision = async (
  reader: Pick<Reader, 'get'>,
  tenantId: string,
  kind: StreamKind,
): Promise<number> =>
  ((await reader.get(tenantId, STREAMS, kind)) as unknown as StreamDocument | undefined)?.revision ?? -1;
