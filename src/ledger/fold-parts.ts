import { allKeys, changingKeys, noKeys } from '../domain/keys';
import type { Key, Tenant } from '../domain/tenant';
import { parsedJson } from '../json';
import type { Fold } from './fold';

/**
 * Splits a fold into small JSON texts, so that writing or reading one never blocks the thread for long, however large
 * the tenant is. The first holds the tenant itself, each of the others some entries of one of its maps, in order.
 */
const MAX_ENTRIES = 500;

type MapName = 'applications' | 'keys';

interface MapPart {
  readonly map: MapName;
  readonly entries: readonly (readonly [string, unknown])[];
}

const entriesOf = function* (map: MapName, all: Iterable<[string, unknown]>): Generator<string> {
  let entries: [string, unknown][] = [];
  for (const entry of all) {
    entries.push(entry);
    if (entries.length < MAX_ENTRIES) continue;
    yield JSON.stringify({ map, entries } satisfies MapPart);
    entries = [];
  }
  if (entries.length > 0) yield JSON.stringify({ map, entries } satisfies MapPart);
};

export const partsOf = function* ({ tenant, ...fold }: Fold): Generator<string> {
  if (tenant.status === 'absent') return yield JSON.stringify({ ...fold, tenant });
  const { applications, keys, ...rest } = tenant;
  yield JSON.stringify({ ...fold, tenant: rest });
  yield* entriesOf('applications', applications);
  yield* entriesOf('keys', allKeys(keys));
};

const isStart = (value: Partial<Fold>): value is Fold =>
  typeof value.revision === 'number' &&
  typeof value.eventId === 'string' &&
  typeof value.tenant?.status === 'string';

/** Reassembles a fold from its parts, in order. */
export interface FoldAssembly {
  /** False: this is not a part of a fold. */
  add(part: string): boolean;
  /** Undefined: nothing was added. */
  fold(): Fold | undefined;
}

export const assembleFold = (): FoldAssembly => {
  const applications = new Map<string, unknown>();
  const keys = changingKeys(noKeys);
  let start: Fold | undefined;

  const addEntries = ({ map, entries }: Partial<MapPart>): boolean => {
    if ((map !== 'applications' && map !== 'keys') || !Array.isArray(entries)) return false;
    for (const [name, value] of entries as MapPart['entries'])
      if (map === 'keys') keys.set(name, value as Key);
      else applications.set(name, value);
    return true;
  };

  return {
    add: (part) => {
      const value = parsedJson(part) as Partial<Fold & MapPart> | null | undefined;
      if (value === undefined || value === null) return false;
      if (start !== undefined) return addEntries(value);
      if (!isStart(value)) return false;
      start = value;
      return true;
    },
    fold: () => {
      if (start === undefined || start.tenant.status === 'absent') return start;
      return { ...start, tenant: { ...start.tenant, applications, keys: keys.keys() } as unknown as Tenant };
    },
  };
};
