import { hasLog } from '../../projections/logs';
import type { Tenant } from '../domain/tenant';
import type { TenantReader } from '../projecting/live-set';

/** What facts of a tenant are checked against, however they arrive. */

export interface ShownActivity {
  /** The last revision of its activity stream that the read models contain, or -1. */
  readonly revision: number;
  /** They show no more of this tenant for now. */
  readonly isParked: boolean;
  /** Whether they contain this event. Sees at least everything up to that revision. */
  readonly has: (eventId: string) => Promise<boolean>;
}

/** Reads the revision first, so that `has` sees at least the events up to it. */
export const shownActivity = async (reader: TenantReader, tenantId: string): Promise<ShownActivity> => {
  const [progress] = await reader.progress([tenantId]);
  return {
    revision: progress?.activity ?? -1,
    isParked: progress?.parked !== undefined,
    has: (eventId) => hasLog(reader, tenantId, eventId),
  };
};

/** Why a tenant cannot take facts. */
export const tenantRefusal = (status: Tenant['status'], tenantId: string) => {
  if (status === 'active') return undefined;
  return status === 'absent'
    ? ({ code: 'unknown_tenant', reason: `tenant ${tenantId} is unknown` } as const)
    : ({ code: 'deleted_tenant', reason: `tenant ${tenantId} is deleted` } as const);
};
