import { yieldToEventLoop } from '../async/clock';
import { allKeys, changingKeys, noKeys, type Key } from '../domain/keys';
import type { Tenant } from '../domain/tenant';
import { parsedJson } from '../json';
import type { Fold } from './fold';
import type { PackedRequests } from './remembered-requests';
import type { TenantSnapshot } from './snapshots';

/**
 * A snapshot as text: lines of JSON, so that writing or reading one never blocks the thread for long, however large the
 * tenant is. The first holds the tenant itself, the next ones some entries of one of its maps each, in order, and the
 * last its remembered requests.
 */
const MAX_ENTRIES = 500;
const NEWLINE = 0x0a;

type MapName = 'applications' | 'keys';

interface MapLine {
  readonly map: MapName;
  readonly entries: readonly (readonly [string, unknown])[];
}

const entriesOf = function* (map: MapName, all: Iterable<[string, unknown]>): Generator<string> {
  let entries: [string, unknown][] = [];
  for (const entry of all) {
    entries.push(entry);
    if (entries.length < MAX_ENTRIES) continue;
    yield JSON.stringify({ map, entries } satisfies MapLine);
    entries = [];
  }
  if (entries.length > 0) yield JSON.stringify({ map, entries } satisfies MapLine);
};

const foldLines = function* ({ tenant, ...fold }: Fold): Generator<string> {
  if (tenant.status === 'absent') return yield JSON.stringify({ ...fold, tenant });
  const { applications, keys, ...rest } = tenant;
  yield JSON.stringify({ ...fold, tenant: rest });
  yield* entriesOf('applications', applications);
  yield* entriesOf('keys', allKeys(keys));
};

export const snapshotText = async ({ fold, replies }: TenantSnapshot): Promise<Uint8Array> => {
  const lines: Buffer[] = [];
  for (const line of foldLines(fold)) {
    lines.push(Buffer.from(`${line}\n`));
    await yieldToEventLoop();
  }
  return Buffer.concat([...lines, Buffer.from(`${JSON.stringify({ replies })}\n`)]);
};

const isStart = (value: Partial<Fold>): value is Fold =>
  typeof value.revision === 'number' &&
  typeof value.eventId === 'string' &&
  typeof value.tenant?.status === 'string';

const isPacked = (value: Partial<PackedRequests>): value is PackedRequests =>
  typeof value.lastKey === 'string' && typeof value.requests === 'string';

/** A snapshot from its lines, in order. */
const assembleSnapshot = () => {
  const applications = new Map<string, unknown>();
  const keys = changingKeys(noKeys);
  let start: Fold | undefined;
  let replies: PackedRequests | undefined;

  const addEntries = ({ map, entries }: Partial<MapLine>): boolean => {
    if ((map !== 'applications' && map !== 'keys') || !Array.isArray(entries)) return false;
    for (const [name, value] of entries as MapLine['entries'])
      if (map === 'keys') keys.set(name, value as Key);
      else applications.set(name, value);
    return true;
  };

  return {
    /** False: this is no line of a snapshot. */
    add: (line: string): boolean => {
      const value = parsedJson(line) as Partial<Fold & MapLine & TenantSnapshot> | null | undefined;
      if (value === undefined || value === null || replies !== undefined) return false;
      if (start === undefined) {
        if (!isStart(value)) return false;
        start = value;
        return true;
      }
      if (value.replies === undefined) return addEntries(value);
      if (!isPacked(value.replies)) return false;
      ({ replies } = value);
      return true;
    },
    /** Undefined: lines are missing. */
    snapshot: (): TenantSnapshot | undefined => {
      if (start === undefined || replies === undefined) return undefined;
      if (start.tenant.status === 'absent') return { fold: start, replies };
      const tenant = { ...start.tenant, applications, keys: keys.keys() } as unknown as Tenant;
      return { fold: { ...start, tenant }, replies };
    },
  };
};

/** Undefined: this is no snapshot, or not a whole one. */
export const readSnapshot = async (text: Uint8Array): Promise<TenantSnapshot | undefined> => {
  const bytes = Buffer.from(text.buffer, text.byteOffset, text.byteLength);
  const assembly = assembleSnapshot();
  let end = 0;
  for (let at = 0; at < bytes.length; at = end + 1) {
    end = bytes.indexOf(NEWLINE, at);
    if (end < 0 || !assembly.add(bytes.toString('utf8', at, end))) return undefined;
    await yieldToEventLoop();
  }
  return assembly.snapshot();
};
