import { logKey } from '../../projections/logs';
import type { Tenant } from '../domain/tenant';
import type { TenantReader } from '../projecting/live-set';

/** What facts of a tenant are checked against, however they arrive. */

export interface ShownActivity {
  /** The last revision of its activity stream that the read models contain, or -1. */
  readonly revision: number;
  /** They show no more of this tenant for now. */
  readonly isParked: boolean;
  /** Which of these events they contain. Sees at least everything up to that revision. */
  readonly among: (eventIds: readonly string[]) => Promise<ReadonlySet<string>>;
}

/** Reads the revision first, so that `among` sees at least the events up to it. */
export const shownActivity = async (reader: TenantReader, tenantId: string): Promise<ShownActivity> => {
  const [progress] = await reader.progress([tenantId]);
  return {
    revision: progress?.activity ?? -1,
    isParked: progress?.parked !== undefined,
    among: async (eventIds) => {
      const rows = await reader.load(eventIds.map((eventId) => logKey(tenantId, eventId)));
      return new Set(eventIds.filter((_, i) => rows[i] !== undefined));
    },
  };
};

/** Why a tenant cannot take facts. */
export const tenantRefusal = (status: Tenant['status'], tenantId: string) => {
  if (status === 'active') return undefined;
  return status === 'absent'
    ? ({ code: 'unknown_tenant', reason: `tenant ${tenantId} is unknown` } as const)
    : ({ code: 'deleted_tenant', reason: `tenant ${tenantId} is deleted` } as const);
};
