import type { ApplicationType } from '../src/domain/permissions';
import {
  findApplication,
  type ApplicationDocument,
  type DirectoryDocument,
  type DirectoryEntry,
  type KeyDocument,
} from './applications';
import type { Reader } from './projector';

/** The questions about the Applications that a tenant has now, and about their keys. */
export interface ApplicationFilter {
  /** Any of these; left out: all. */
  readonly ids?: readonly string[] | undefined;
  readonly types?: readonly ApplicationType[] | undefined;
}

export interface ApplicationQuestion {
  readonly filter: ApplicationFilter;
  /** Only those that were created after the event at this revision. */
  readonly after?: number;
  readonly page: number;
  readonly size: number;
}

export interface ApplicationPage {
  readonly applications: readonly ApplicationDocument[];
  /** Of the whole filter. */
  readonly total: number;
  /** Where the next page begins: after this revision. Undefined: there is none. */
  readonly last?: number;
}

/** One document for each character that an id may begin with. */
const DIRECTORIES = 16;

const entriesOf = async (
  reader: Reader,
  tenantId: string,
  { ids, types }: ApplicationFilter,
): Promise<readonly DirectoryEntry[]> => {
  const found = await reader.find(tenantId, 'directory', { limit: DIRECTORIES });
  return (found as unknown as readonly DirectoryDocument[])
    .flatMap(({ entries }) => entries)
    .filter(({ id, type }) => (ids?.includes(id) ?? true) && (types?.includes(type) ?? true))
    .toSorted((a, b) => a.revision - b.revision);
};

/** Undefined: there is none, or it is deleted. */
export const findLiveApplication = async (
  reader: Reader,
  tenantId: string,
  id: string,
): Promise<ApplicationDocument | undefined> => {
  const application = await findApplication(reader, tenantId, id);
  return application?.deleted_at === undefined ? application : undefined;
};

/** In the order in which they were created: new ones come last, and shift no page. */
export const findApplications = async (
  reader: Reader,
  tenantId: string,
  { filter, after = -1, page, size }: ApplicationQuestion,
): Promise<ApplicationPage> => {
  const entries = await entriesOf(reader, tenantId, filter);
  const first = entries.findIndex(({ revision }) => revision > after);
  const from = first < 0 ? entries.length : first + (page - 1) * size;
  const some = entries.slice(from, from + size);
  const found = await Promise.all(some.map(({ id }) => findLiveApplication(reader, tenantId, id)));
  const last = some.at(-1);
  return {
    applications: found.filter((application) => application !== undefined),
    total: entries.length,
    ...(last === undefined || from + size >= entries.length ? {} : { last: last.revision }),
  };
};

/** More than an Application may ever have. */
const MAX_KEYS = 1_000;

/** The keys of an Application that are neither revoked nor expired at a time, oldest first. */
export const findLiveKeys = async (
  reader: Reader,
  tenantId: string,
  applicationId: string,
  at: string,
): Promise<readonly KeyDocument[]> => {
  // A key ends at the moment that it expires: the border itself is no longer in.
  const from = new Date(Date.parse(at) + 1).toISOString();
  const found = await reader.find(tenantId, 'keys', {
    index: 'live',
    equal: [applicationId],
    from,
    limit: MAX_KEYS,
  });
  return (found as unknown as readonly KeyDocument[]).toSorted((a, b) =>
    a.created_at === b.created_at ? (a.id < b.id ? -1 : 1) : a.created_at < b.created_at ? -1 : 1,
  );
};
