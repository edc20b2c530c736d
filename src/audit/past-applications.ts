import type { ApplicationFilter } from '../../projections/application-pages';
import { liveKeysOf } from '../domain/grants';
import type { Key } from '../domain/keys';
import type { Application } from '../domain/tenant';
import type { LedgerLog } from '../event-log/ledger-log';
import { tenantAt, type Moment, type PastTenant } from './tenant-history';

/** An Application as it was at a moment. */
export interface PastApplication {
  readonly application: Application;
  /** Those valid at that time, possibly none. */
  readonly keys: readonly Key[];
}

export interface PastQuestion {
  readonly moment: Moment;
  readonly filter: ApplicationFilter;
  readonly skip: number;
  readonly size: number;
}

/** In the order in which they were created. Only an active tenant has any: nobody has access to a deleted one. */
const applicationsOf = ({ tenant, time }: PastTenant): readonly PastApplication[] => {
  if (tenant.status !== 'active') return [];
  return [...tenant.applications.values()].map((application) => ({
    application,
    keys: liveKeysOf(tenant, application, time),
  }));
};

const matches = ({ application: { id, type } }: PastApplication, { ids, types }: ApplicationFilter) =>
  (ids?.includes(id) ?? true) && (types?.includes(type) ?? true);

export const applicationsAt = async (
  ledgerLog: LedgerLog,
  tenantId: string,
  { moment, filter, skip, size }: PastQuestion,
) => {
  const then = await tenantAt(ledgerLog, tenantId, moment);
  const matching = applicationsOf(then).filter((application) => matches(application, filter));
  /** `total` is the number of matches on all pages. */
  return { applications: matching.slice(skip, skip + size), total: matching.length };
};

export type PastApplicationPage = Awaited<ReturnType<typeof applicationsAt>>;
