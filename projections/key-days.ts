import type { Recorded } from '../src/domain/events';
import type { KeyUse, KeyUseEvent } from '../src/domain/key-use';
import { DAY_MS } from '../src/domain/texts';
import { changeTogether, type Change, type Reader } from './projector';

/** What a key was used for and refused on one UTC day. */
export interface KeyDayView {
  readonly date: string;
  readonly operations: Readonly<Record<string, number>>;
  readonly refusals: Readonly<Record<string, number>>;
  readonly missing_permissions: readonly string[];
  readonly events_given_out: number;
  readonly first_used_at: string;
  readonly last_used_at: string;
}

/** The last days on which a key did something, newest first. */
interface KeyDays {
  readonly days: readonly KeyDayView[];
}

export interface LastUse {
  readonly key_id: string;
  readonly application_id: string;
  readonly last_used_at: string;
}

const DAYS = 'key_days';
const LAST_USES = 'key_uses';
const MAX_DAYS = 30;
/** Of one Application, the most recently used: more than it can have valid keys. */
const MAX_KEYS = 1_000;

/** In the read model `logs`. */
export const keyCollections = [
  { name: DAYS, indexes: {} },
  { name: LAST_USES, indexes: { by_application: ['application_id', 'last_used_at'] } },
];

const sum = (a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>) => {
  const all = { ...a };
  for (const [name, count] of Object.entries(b)) all[name] = (all[name] ?? 0) + count;
  return all;
};

const earlier = (a: string, b: string): string => (a < b ? a : b);
export const later = (a: string, b: string): string => (a > b ? a : b);

const dayWith = (day: KeyDayView | undefined, use: KeyUse): KeyDayView => ({
  date: use.date,
  operations: sum(day?.operations ?? {}, use.operations),
  refusals: sum(day?.refusals ?? {}, use.refusals),
  missing_permissions: [...new Set([...(day?.missing_permissions ?? []), ...use.missingPermissions])],
  events_given_out: (day?.events_given_out ?? 0) + use.eventsGivenOut,
  first_used_at: earlier(day?.first_used_at ?? use.firstAt, use.firstAt),
  last_used_at: later(day?.last_used_at ?? use.lastAt, use.lastAt),
});

const daysWith = (days: readonly KeyDayView[], use: KeyUse): readonly KeyDayView[] => {
  const day = days.find(({ date }) => date === use.date);
  const all = [...days.filter((other) => other !== day), dayWith(day, use)];
  return all.toSorted((a, b) => (a.date > b.date ? -1 : 1)).slice(0, MAX_DAYS);
};

/** Whether the key was valid: one that is not is not used. */
const isAccepted = ({ operations, refusals, eventsGivenOut }: KeyUse): boolean =>
  Object.keys(operations).length > 0 || refusals.permission_missing !== undefined || eventsGivenOut > 0;

/** A second copy of an event, which has a row already, counts nothing. */
export const keyUsed = ({ id, data }: Recorded<KeyUseEvent>): Change => {
  const { keyId: key, applicationId: application_id } = data;
  const touches = [
    { collection: 'log_rows', key: id },
    { collection: DAYS, key },
    { collection: LAST_USES, key },
  ];
  return changeTogether(touches, ([row, days, last]) => {
    if (row !== undefined) return [row, days, last];
    const now = (days as unknown as KeyDays | undefined)?.days ?? [];
    const before = (last as unknown as LastUse | undefined)?.last_used_at ?? data.lastAt;
    const used = { key_id: key, application_id, last_used_at: later(before, data.lastAt) };
    return [row, { days: daysWith(now, data) }, isAccepted(data) ? used : last];
  });
};

/** The last 30 days on which a key did something, newest first, including what is not in the log yet. */
export const findKeyDays = async (
  reader: Reader,
  tenantId: string,
  keyId: string,
  at: string,
  unwritten: readonly KeyUse[] = [],
): Promise<readonly KeyDayView[]> => {
  const before = new Date(Date.parse(at) - MAX_DAYS * DAY_MS).toISOString().slice(0, 10);
  const found = (await reader.get(tenantId, DAYS, keyId)) as unknown as KeyDays | undefined;
  return unwritten.reduce(daysWith, found?.days ?? []).filter(({ date }) => date > before);
};

export const findLastUse = async (reader: Reader, tenantId: string, keyId: string) =>
  ((await reader.get(tenantId, LAST_USES, keyId)) as unknown as LastUse | undefined)?.last_used_at;

export const findLastUses = async (reader: Reader, tenantId: string, applicationId: string) => {
  const selection = { index: 'by_application', equal: [applicationId], descending: true, limit: MAX_KEYS };
  const found = (await reader.find(tenantId, LAST_USES, selection)) as unknown as readonly LastUse[];
  return new Map(found.map(({ key_id, last_used_at }) => [key_id, last_used_at]));
};
