import type { ApplicationType } from '../src/domain/permissions';
import { QUOTAS, type ApplicationDocument } from '../src/domain/tenant';
import { findApplication, type StoredApplication, type StoredKey } from './applications';
import type { Reader } from './projector';

/** Queries about a tenant's current Applications and their keys. */
export interface ApplicationFilter {
  /** Any of these. Left out: all. */
  readonly ids?: readonly string[] | undefined;
  readonly types?: readonly ApplicationType[] | undefined;
}

export const isWantedBy =
  ({ ids, types }: ApplicationFilter) =>
  ({ id, type }: ApplicationDocument): boolean =>
    (ids?.includes(id) ?? true) && (types?.includes(type) ?? true);

export interface ApplicationQuery {
  readonly filter: ApplicationFilter;
  /** Only those created after the event at this revision. */
  readonly after?: number | undefined;
  readonly page: number;
  readonly size: number;
}

export interface ApplicationPage {
  readonly applications: readonly StoredApplication[];
  /** The number of matches on all pages. */
  readonly total: number;
  /** The next page starts after this revision. Undefined: this is the last page. */
  readonly last?: number;
}

/** Undefined: it does not exist, or is deleted. */
export const findLiveApplication = async (reader: Reader, tenantId: string, id: string) => {
  const application = await findApplication(reader, tenantId, id);
  return application?.deleted_at === undefined ? application : undefined;
};

/** Ordered by creation: new ones come last, so they never shift a page. */
export const findApplications = async (
  reader: Reader,
  tenantId: string,
  { filter, after = -1, page, size }: ApplicationQuery,
): Promise<ApplicationPage> => {
  const found = await reader.find(tenantId, 'applications', { index: 'listed', limit: QUOTAS.applications });
  const all = (found as unknown as readonly StoredApplication[]).filter(isWantedBy(filter));
  const first = all.findIndex(({ listed_at = 0 }) => listed_at > after);
  const from = first < 0 ? all.length : first + (page - 1) * size;
  const applications = all.slice(from, from + size);
  const last = from + size < all.length ? applications.at(-1)?.listed_at : undefined;
  return { applications, total: all.length, ...(last === undefined ? {} : { last }) };
};

/** The keys of an Application that are neither revoked nor expired at a given time, oldest first. */
export const findLiveKeys = async (reader: Reader, tenantId: string, applicationId: string, at: string) => {
  // A key that expires at this very moment is already expired.
  const from = new Date(Date.parse(at) + 1).toISOString();
  const query = { index: 'live', equal: [applicationId], from, limit: QUOTAS.liveKeys };
  const found = (await reader.find(tenantId, 'keys', query)) as unknown as readonly StoredKey[];
  const orderOf = ({ created_at, id }: StoredKey): string => `${created_at} ${id}`;
  return found.toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
};
