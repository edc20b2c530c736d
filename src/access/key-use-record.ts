import { randomUUID } from 'node:crypto';
import { beforeDeadline, monotonicMs } from '../async/clock';
import type { Client } from '../domain/events';
import type { KeyUse, RefusalReason } from '../domain/key-use';
import type { KnownKey } from '../domain/refusal';
import { DAY_MS } from '../domain/texts';
import { encode } from '../event-log/codec';
import { bytesOf, type NewEvent, uuidOfText } from '../event-log/event-log';
import { codeOf } from '../fault';
import { TIMES } from '../times';
import {
  clientCounter,
  hourlyLimits,
  type ClientCounter,
  type KeyAct,
  type HourlyLimit,
  type KeyClients,
  type Use,
} from './key-clients';

/** A key that is known, valid or not, and the tenant that it belongs to. */
export interface KeyOfTenant extends KnownKey {
  readonly tenantId: string;
}

export interface KeyUseRecordDependencies {
  /** Appends to the tenant's activity stream, whoever else does. */
  readonly append: (tenantId: string, events: readonly NewEvent[]) => Promise<unknown>;
  readonly warn: (what: string, error: unknown) => void;
  /** Whether events say where requests came from. */
  readonly recordsClients: boolean;
  /** How long what is due is collected, so that it becomes one append per tenant. */
  readonly collectMs: number;
  /** How long the last append may take at a stop. */
  readonly closeMs?: number;
  readonly now?: () => number;
}

/**
 * The most that is kept in memory, at about two kilobytes each: the keys that were used today, and those of yesterday
 * until they are written. Further ones are not counted.
 */
const MAX_KEYS = 20_000;
/** A single tenant must not crowd out the others. */
const MAX_KEYS_OF_TENANT = 5_000;
/** What is on record at once, besides the first use of a day and refusals. The rest is in the sums. */
const MAX_AT_ONCE_OF_KEY = 20;
const MAX_AT_ONCE_OF_TENANT = 200;

const tooMany = new Error(`More than ${MAX_KEYS} keys were used, or ${MAX_KEYS_OF_TENANT} of one tenant.`);

/** Of one append: few enough not to keep others waiting. */
const MAX_EVENTS = 100;
const MAX_BYTES = 262_144;
const APPENDS_AT_ONCE = 10;

type Tally = {
  -readonly [M in Exclude<keyof KeyUse, 'applicationId' | 'keyId' | 'date'>]: KeyUse[M];
} & {
  operations: Record<string, number>;
  refusals: Partial<Record<RefusalReason, number>>;
  missingPermissions: string[];
};

/** What one key did on one day. */
interface KeyDay {
  /** With the last name of its Application. */
  key: KeyOfTenant;
  readonly date: string;
  /** What no event says yet. */
  tally: Tally | undefined;
  /** What an event says that is not known to be written. It is appended again as it is: it has the same id then. */
  unsettled: { readonly event: NewEvent; readonly use: KeyUse } | undefined;
  readonly clients: KeyClients;
  usedAt: string | undefined;
}

const dateOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

const idOf = ({ tenantId, keyId }: Pick<KeyOfTenant, 'tenantId' | 'keyId'>, date: string): string =>
  `${tenantId} ${keyId} ${date}`;

const emptyTally = (at: string): Tally => {
  const nothing = { operations: {}, refusals: {}, missingPermissions: [], eventsGivenOut: 0 };
  return { ...nothing, firstAt: at, lastAt: at };
};

const addTo = (tally: Tally, at: string, act: KeyAct): void => {
  if (at < tally.firstAt) tally.firstAt = at;
  if (at > tally.lastAt) tally.lastAt = at;
  if ('operation' in act) tally.operations[act.operation] = (tally.operations[act.operation] ?? 0) + 1;
  else if ('eventsGivenOut' in act) tally.eventsGivenOut += act.eventsGivenOut;
  else {
    tally.refusals[act.reason] = (tally.refusals[act.reason] ?? 0) + 1;
    if (act.reason === 'permission_missing')
      tally.missingPermissions = [...new Set([...tally.missingPermissions, ...act.permissions])];
  }
};

const useOf = ({ key: { applicationId, keyId }, date }: KeyDay, tally: Tally): KeyUse => {
  return { applicationId, keyId, date, ...tally };
};

const unwrittenOf = (day: KeyDay): readonly KeyUse[] => [
  ...(day.unsettled === undefined ? [] : [day.unsettled.use]),
  ...(day.tally === undefined ? [] : [useOf(day, day.tally)]),
];

const isStream = (act: KeyAct): act is Use => 'operation' in act && act.beginsStream === true;

/** In an hour: the beginning of a stream once per operation and address. */
const limitsOf = ({ tenantId, keyId }: KeyOfTenant, act: KeyAct, client?: Client): readonly HourlyLimit[] => [
  [keyId, MAX_AT_ONCE_OF_KEY],
  [tenantId, MAX_AT_ONCE_OF_TENANT],
  ...(isStream(act) ? [[`${keyId} ${act.operation} ${client?.address}`, 1] as const] : []),
];

/** What is kept in memory, within its bounds. */
const boundedDays = (counter: ClientCounter) => {
  const days = new Map<string, KeyDay>();
  const perTenant = new Map<string, number>();
  const find = (key: Pick<KeyOfTenant, 'tenantId' | 'keyId'>, date: string) => days.get(idOf(key, date));
  return {
    all: (): Iterable<KeyDay> => days.values(),
    find,
    /** Undefined: there is no room for it. */
    begin: (key: KeyOfTenant, date: string): KeyDay | undefined => {
      const ofTenant = perTenant.get(key.tenantId) ?? 0;
      if (days.size >= MAX_KEYS || ofTenant >= MAX_KEYS_OF_TENANT) return undefined;
      const unused = { tally: undefined, unsettled: undefined, usedAt: undefined, clients: counter.begin() };
      const day: KeyDay = { key, date, ...unused };
      days.set(idOf(key, date), day);
      perTenant.set(key.tenantId, ofTenant + 1);
      return day;
    },
    forget: ({ key, date, clients }: KeyDay): void => {
      if (!days.delete(idOf(key, date))) return;
      counter.forget(clients);
      const left = (perTenant.get(key.tenantId) ?? 1) - 1;
      if (left === 0) perTenant.delete(key.tenantId);
      else perTenant.set(key.tenantId, left);
    },
  };
};

/** Makes the event about a key and day that is to be appended, if there is anything to say. */
const eventMaker = (counter: ClientCounter) => {
  const instance = randomUUID();
  let made = 0;
  return (day: KeyDay): NewEvent | undefined => {
    const { key, date, tally, clients } = day;
    if (day.unsettled !== undefined || tally === undefined) return day.unsettled?.event;
    made += 1;
    const id = uuidOfText(`KeyUsed ${idOf(key, date)} ${instance} ${made}`);
    const actor = { type: 'application', id: key.applicationId, name: key.applicationName } as const;
    const use = useOf(day, tally);
    const metadata = { actor, keyId: key.keyId, at: use.lastAt, ...counter.take(clients) };
    const event = encode({ type: 'KeyUsed', data: use }, metadata, id);
    day.unsettled = { event, use };
    day.tally = undefined;
    return event;
  };
};

/** Appends what is due, one append per tenant unless it has very many keys. What fails stays due. */
const appender = (
  { append, warn }: KeyUseRecordDependencies,
  counter: ClientCounter,
  due: Set<KeyDay>,
  onWritten: (day: KeyDay) => void,
) => {
  const eventOf = eventMaker(counter);

  /** The events about the first of these, as many as one append takes. */
  const partOf = (left: readonly KeyDay[]) => {
    const part: KeyDay[] = [];
    const events: NewEvent[] = [];
    for (let bytes = 0; part.length < Math.min(left.length, MAX_EVENTS) && bytes < MAX_BYTES;) {
      const day = left[part.length] as KeyDay;
      // What was counted since an append of it failed may be due as well.
      if (day.unsettled !== undefined && day.tally !== undefined) due.add(day);
      const event = eventOf(day);
      part.push(day);
      if (event === undefined) continue;
      events.push(event);
      bytes += bytesOf(event);
    }
    return { part, events };
  };

  /** False: the log cannot take any more now. */
  const write = async (tenantId: string, ofTenant: readonly KeyDay[]): Promise<boolean> => {
    for (let from = 0; from < ofTenant.length;)
      try {
        const { part, events } = partOf(ofTenant.slice(from));
        if (events.length > 0) await append(tenantId, events);
        for (const day of part) {
          day.unsettled = undefined;
          onWritten(day);
        }
        from += part.length;
      } catch (error) {
        warn('What keys did could not be recorded, and is tried again.', error);
        for (const day of ofTenant.slice(from)) due.add(day);
        return codeOf(error) !== 'log_unavailable';
      }
    return true;
  };

  return async (): Promise<void> => {
    const byTenant = new Map<string, KeyDay[]>();
    for (const day of due) byTenant.set(day.key.tenantId, [...(byTenant.get(day.key.tenantId) ?? []), day]);
    const batches = [...byTenant];
    due.clear();
    for (let canWrite = true; batches.length > 0;) {
      const next = batches.splice(0, APPENDS_AT_ONCE);
      if (canWrite) canWrite = (await Promise.all(next.map((batch) => write(...batch)))).every(Boolean);
      else for (const day of next.flatMap(([, ofTenant]) => ofTenant)) due.add(day);
    }
  };
};

/** Whether it is a tenant's turn to write its day that has ended. */
const isTurnOf = (tenantId: string, ms: number): boolean =>
  ms % DAY_MS >= Number.parseInt(tenantId.slice(0, 8), 16) % TIMES.keyUsesSpreadMs;

/**
 * Records what keys did as `KeyUsed` events: at the first use of a key on a UTC day and from an address, at a refusal, at
 * the beginning of a stream, after the day and at a stop. Nothing waits for it. What could not be appended is tried again;
 * what was not appended when a process is killed is lost.
 */
export const keyUseRecord = (dependencies: KeyUseRecordDependencies) => {
  const { warn, recordsClients, collectMs, closeMs = TIMES.lastMs, now = Date.now } = dependencies;
  const counter = clientCounter();
  const isWithin = hourlyLimits(now);
  const days = boundedDays(counter);
  const due = new Set<KeyDay>();
  const isOver = ({ date }: KeyDay): boolean => date < dateOf(now());
  const writeDue = appender(dependencies, counter, due, (day) => {
    if (day.tally === undefined && isOver(day)) days.forget(day);
  });
  let writing: Promise<void> | undefined;
  const timer = setInterval(() => {
    for (const day of days.all()) if (isOver(day) && isTurnOf(day.key.tenantId, now())) due.add(day);
    if (due.size > 0) writing ??= writeDue().finally(() => (writing = undefined));
  }, collectMs).unref();

  /** Twice: what was counted while an event was unsettled comes after that. */
  const writeAll = async (): Promise<void> => {
    await writing;
    for (let round = 0; round < 2; round += 1) {
      for (const day of days.all()) due.add(day);
      await writeDue();
    }
  };
  /** Newest first. */
  const lastDaysOf = (tenantId: string, keyId: string): readonly KeyDay[] =>
    [now(), now() - DAY_MS].flatMap((ms) => days.find({ tenantId, keyId }, dateOf(ms)) ?? []);

  return {
    /** Never throws or waits. `at` is ISO 8601. */
    count: (key: KeyOfTenant, at: string, act: KeyAct, client?: Client): void => {
      const known = days.find(key, at.slice(0, 10));
      const day = known ?? days.begin(key, at.slice(0, 10));
      if (day === undefined) return warn('Not all that keys do is counted.', tooMany);
      addTo((day.tally ??= emptyTally(at)), at, act);
      if (key.applicationName !== undefined) day.key = key;
      const isNewPlace = recordsClients && counter.add(day.clients, at, act, client);
      // The first refusal for this reason in an hour is reported at once.
      const isNewRefusal = 'reason' in act && isWithin([`${key.keyId} ${act.reason}`, 1]);
      if (isNewRefusal || known === undefined) due.add(day);
      const isNews = isNewPlace || isStream(act);
      if (isNews && !due.has(day) && isWithin(...limitsOf(key, act, client))) due.add(day);
      const isAccepted = !('reason' in act) || act.reason === 'permission_missing';
      if (isAccepted && at > (day.usedAt ?? '')) day.usedAt = at;
    },
    /** When this process last accepted the key, today or on a day that is not written yet. */
    lastUse: (tenantId: string, keyId: string): string | undefined =>
      lastDaysOf(tenantId, keyId).find(({ usedAt }) => usedAt !== undefined)?.usedAt,
    /** What this process has counted about a key and no event in the log says yet. */
    unwritten: (tenantId: string, keyId: string): readonly KeyUse[] =>
      lastDaysOf(tenantId, keyId).flatMap(unwrittenOf),
    close: async (): Promise<void> => {
      clearInterval(timer);
      const late = () => new Error(`It took longer than ${closeMs} ms.`);
      await beforeDeadline(writeAll(), monotonicMs() + closeMs, late).catch((error: unknown) =>
        warn('The last of what keys did could not be recorded.', error),
      );
    },
  };
};

export type KeyUseRecord = ReturnType<typeof keyUseRecord>;
