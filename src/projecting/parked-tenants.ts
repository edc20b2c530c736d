import type { Reader } from '../../projections/projector';
import { unlessDamaged } from '../read-models/damage';
import { generationName, PARKED, type DocumentKey, type Scanner } from '../read-models/read-models';
import { documentsOf } from '../read-models/scanning';
import type { LiveGeneration } from './live-generations';

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

/** Ordered by tenant. */
export const firstParked = async (generation: Scanner, limit: number): Promise<readonly ParkedTenant[]> => {
  const parked: ParkedTenant[] = [];
  for await (const tenant of parkedTenants(generation)) {
    parked.push(tenant);
    if (parked.length === limit) break;
  }
  return parked;
};

/** A tenant parked at an event. */
export type Blocked = Pick<ParkedTenant, 'tenant_id' | 'event_id' | 'reason'>;

/** The tenants parked in a projection, ordered by id. `isCut`: there may be more. */
export interface ParkedReport {
  readonly projection: string;
  readonly parked: readonly Blocked[];
  readonly isCut: boolean;
}

const MAX_REPORTED = 1_000;

const reportOn = async ({ projector, generation }: LiveGeneration): Promise<ParkedReport> => {
  const parked = await firstParked(generation, MAX_REPORTED);
  return {
    projection: projector.name,
    parked: parked.map(({ tenant_id, event_id, reason }) => ({ tenant_id, event_id, reason })),
    isCut: parked.length === MAX_REPORTED,
  };
};

/**
 * Reports the tenants parked in the live read models: at first, after a switch, and when this or another process may
 * have changed them.
 */
export const parkedReports = (report: (parked: ParkedReport) => void) => {
  const changed = new Set<string>();
  const reported = new Map<string, string>();
  return {
    changed: (generation: string): void => void changed.add(generation),
    /** Forces new reports: another process may have projected until now. */
    begin: (): void => reported.clear(),
    look: async (live: readonly LiveGeneration[]): Promise<void> => {
      for (const current of live) {
        const name = generationName(current.generation.id);
        if (!changed.delete(name) && reported.get(current.projector.name) === name) continue;
        reported.delete(current.projector.name);
        // Whoever finds the damage reports it. It must not keep what is whole from being projected.
        const parked = await unlessDamaged(reportOn(current));
        if (parked === undefined) continue;
        report(parked);
        reported.set(current.projector.name, name);
      }
    },
  };
};
