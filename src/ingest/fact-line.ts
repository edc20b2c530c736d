import { distance } from 'fastest-levenshtein';
import {
  currentVersion,
  eventSchemas,
  isFactType,
  type Actor,
  type FactEvent,
  type FactType,
} from '../domain/events';
import { DAY_MS, isTraceId, looksLikeKey, masked, uuidFrom } from '../domain/texts';
import { encode, namesAnother, type Metadata } from '../event-log/codec';
import { bytesOf, type NewEvent, isJsonObject, parsedJson } from '../event-log/event-log';
import { codeOf, moreOf } from '../fault';
import type { Line } from './lines';

/** A reported fact as a line of NDJSON. Snake case, because it is a wire format. */
interface WireFact {
  readonly id: string;
  readonly tenant_id: string;
  readonly type: FactType;
  readonly actor?: Actor;
  readonly trace_id?: string;
  /** The key of the tenant that it was done with. */
  readonly key_id?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** A fact and its size as stored, or why it is refused, and its id if it has one. */
type ReadFact =
  | { readonly tenantId: string; readonly event: NewEvent; readonly bytes: number }
  | { readonly fault: string; readonly id?: string | undefined };

export type CheckedFact = ReadFact & { readonly line: number };

/** When a fact was received, and from whom if that was over HTTP. */
export type Receipt = Pick<Metadata, 'at' | 'service'>;

/** It may quote what was sent. */
export const reasonText = (text: string): string => masked(text).slice(0, 200).toWellFormed();

const MEMBERS = ['id', 'tenant_id', 'type', 'version', 'actor', 'trace_id', 'key_id', 'data'];

/** Few letters of a short name may be wrong, since short names are all alike. */
const isMisspelt = (name: string, known: string): boolean => {
  const [sent, right] = [name, known].map((one) => one.toLowerCase().replaceAll('_', '')) as [string, string];
  const wrongLetters = Math.min(2, Math.max(0, right.length - 3));
  return Math.abs(sent.length - right.length) <= 2 && distance(sent, right) <= wrongLetters;
};

/** Unknown members are kept, or ignored, so one that only looks unknown must not be lost silently. */
const misspeltIn = (value: object, known: readonly string[]): string | undefined => {
  for (const name of Object.keys(value)) {
    const right = known.includes(name) ? undefined : known.find((one) => isMisspelt(name, one));
    if (right !== undefined) return `"${name}" is not a known member: did you mean "${right}"?`;
  }
  return undefined;
};

const isActor = (value: unknown): boolean =>
  isJsonObject(value) &&
  (value['type'] === 'application' || value['type'] === 'user') &&
  uuidFrom(value['id']) !== undefined;

/** The first problem of a line, in the order in which one would fix them. */
const faultOf = (line: unknown): string | undefined => {
  if (!isJsonObject(line)) return 'it must be one JSON object';
  const misspelt = misspeltIn(line, MEMBERS);
  if (misspelt !== undefined) return misspelt;
  const { id, tenant_id: tenantId, type, version, actor, trace_id: traceId, key_id: keyId, data } = line;
  if (uuidFrom(id) === undefined) return '"id" must be a UUID';
  if (uuidFrom(tenantId) === undefined) return '"tenant_id" must be a UUID';
  if (typeof type !== 'string' || !isFactType(type))
    return `"type" is not a known fact: ${JSON.stringify(type)}`;
  if (version !== undefined && version !== currentVersion(type))
    return `"version" must be ${currentVersion(type)} for ${type}`;
  if (actor !== undefined && !isActor(actor))
    return '"actor" must be {"type": "application" or "user", "id": a UUID}';
  if (traceId !== undefined && !(typeof traceId === 'string' && isTraceId(traceId)))
    return '"trace_id" must be 1 to 128 of A-Z a-z 0-9 . _ : - and not an API key';
  if (keyId !== undefined && uuidFrom(keyId) === undefined) return '"key_id" must be a UUID';
  return isJsonObject(data)
    ? misspeltIn(data, Object.keys(eventSchemas[type]['properties'] ?? {}))
    : '"data" must be an object';
};

const EARLIEST = Date.parse('2000-01-01T00:00:00Z');

/** Only this service says what happened to these. */
const DECIDED_HERE = new Set(['tenant', 'application', 'key', 'event']);

/** What cannot be true, although it fits its schema. */
const untrueIn = ({ data: { occurredAt, entityType }, type }: WireFact, at: string): string | undefined => {
  const time = typeof occurredAt === 'string' ? Date.parse(occurredAt) : EARLIEST;
  if (time < EARLIEST || time > Date.parse(at) + DAY_MS)
    return '"occurredAt" must be in 2000 or later, and at most a day ahead';
  if (type === 'ActivityReported' && DECIDED_HERE.has(String(entityType).toLowerCase()))
    return `"entityType" must not be "${String(entityType)}": only this service says what happened to it`;
  return undefined;
};

const textFault = (text: string): string | undefined => {
  if (!text.isWellFormed()) return '"data" has half of a character (a lone surrogate)';
  return looksLikeKey(text) ? '"data" must not contain an API key' : undefined;
};

/** Parsing rounds large numbers, and `1e400` would be stored as null. */
const isRounded = (value: number): boolean =>
  !Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value));

/** Readers in other languages go hardly deeper than twice as far. */
const MAX_LEVELS = 500;

/** Why data cannot be stored as it is. */
const unstorableIn = (value: unknown, level = 0): string | undefined => {
  if (typeof value === 'string') return textFault(value);
  if (typeof value === 'number' && isRounded(value))
    return '"data" has a number beyond 9007199254740991, which would be rounded: send it as text';
  if (typeof value !== 'object' || value === null) return undefined;
  if (level === MAX_LEVELS) return `"data" is nested deeper than ${MAX_LEVELS} levels`;
  for (const [name, member] of Object.entries(value)) {
    if (name === '__proto__') return '"data" must not contain __proto__';
    const fault = textFault(name) ?? unstorableIn(member, level + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
};

/** Its size as stored, which may be larger than its line, but fits into an append. Or why it cannot be stored as it is. */
const sizeOf = (event: NewEvent): number | string => unstorableIn(event.data) ?? bytesOf(event);

/** The event, or why its data is invalid. */
const eventOf = (fact: WireFact, { at, service }: Receipt): NewEvent | string => {
  const { id, type, actor, trace_id: traceId, key_id: keyId, data } = fact;
  const author = actor === undefined ? undefined : { type: actor.type, id: actor.id.toLowerCase() };
  const metadata = { at, actor: author, keyId: keyId?.toLowerCase(), traceId, service };
  try {
    return encode({ type, data } as unknown as FactEvent, metadata, id.toLowerCase());
  } catch (error) {
    if (codeOf(error) !== 'event_invalid') throw error;
    return String(moreOf(error)['reason']);
  }
};

/** The fact that a value is, or the first reason why it is none. */
const factOf = (value: unknown, receipt: Receipt): Exclude<ReadFact, { fault: string }> | string => {
  const fault = faultOf(value);
  if (fault !== undefined) return fault;
  const fact = value as WireFact;
  const event = eventOf(fact, receipt);
  if (typeof event === 'string') return `"data" does not fit ${fact.type}: ${event}`;
  const untrue = untrueIn(fact, receipt.at);
  if (untrue !== undefined) return untrue;
  if (namesAnother(fact.data, fact.tenant_id)) return '"data" names another tenant';
  const bytes = sizeOf(event);
  return typeof bytes === 'string' ? bytes : { tenantId: fact.tenant_id.toLowerCase(), event, bytes };
};

export const checkFact = (value: unknown, receipt: Receipt): ReadFact => {
  const fact = factOf(value, receipt);
  if (typeof fact !== 'string') return fact;
  return { fault: reasonText(fact), id: isJsonObject(value) ? uuidFrom(value['id']) : undefined };
};

/** The facts in lines that are not empty, each checked by itself. */
export function* factsIn(lines: readonly Line[], receipt: Receipt): Generator<CheckedFact> {
  for (const { number: line, ...given } of lines) {
    const value = 'text' in given ? parsedJson(given.text) : undefined;
    if ('fault' in given) yield { line, ...given };
    else if (value !== undefined) yield { line, ...checkFact(value, receipt) };
    else if (given.text.trim() !== '') yield { line, fault: 'it is not JSON' };
  }
}
