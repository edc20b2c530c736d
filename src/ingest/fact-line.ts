import { currentVersion, isFactType, type Actor, type FactEvent, type FactType } from '../domain/events';
import { isTraceId, uuidFrom } from '../domain/texts';
import { encode, namesAnother } from '../event-log/codec';
import { bytesOf, type NewEvent, isJsonObject, parsedJson } from '../event-log/event-log';
import { codeOf, moreOf } from '../fault';

/** A reported fact as a line of NDJSON. Snake case, because it is a wire format. */
interface WireFact {
  readonly id: string;
  readonly tenant_id: string;
  readonly type: FactType;
  readonly actor?: Actor;
  readonly trace_id?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** A fact and its size as stored, or why it is refused. */
type ReadFact =
  | { readonly tenantId: string; readonly event: NewEvent; readonly bytes: number }
  | { readonly fault: string };

const isActor = (value: unknown): boolean =>
  isJsonObject(value) &&
  (value['type'] === 'application' || value['type'] === 'user') &&
  uuidFrom(value['id']) !== undefined;

/** The first problem of a line, in the order in which one would fix them. */
const faultOf = (line: unknown): string | undefined => {
  if (!isJsonObject(line)) return 'it must be one JSON object';
  const { id, tenant_id: tenantId, type, version, actor, trace_id: traceId, data } = line;
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
  return isJsonObject(data) ? undefined : '"data" must be an object';
};

/** A number that the line may have had otherwise: parsing rounds large ones, and `1e400` would be stored as null. */
const hasRoundedNumber = (value: unknown): boolean => {
  if (typeof value === 'number')
    return !Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value));
  return typeof value === 'object' && value !== null && Object.values(value).some(hasRoundedNumber);
};

/** Its size as stored, which may be larger than its line, but fits into an append. Or why it cannot be stored as it is. */
const sizeOf = (event: NewEvent): number | string => {
  try {
    if (hasRoundedNumber(event.data))
      return '"data" has a number beyond 9007199254740991, which would be rounded: send it as text';
    return bytesOf(event);
  } catch {
    return '"data" is nested too deep';
  }
};

/** The event, or why its data is invalid. */
const eventOf = ({ id, type, actor, trace_id: traceId, data }: WireFact, at: string): NewEvent | string => {
  const author = actor === undefined ? undefined : { type: actor.type, id: actor.id.toLowerCase() };
  try {
    return encode({ type, data } as unknown as FactEvent, { at, actor: author, traceId }, id.toLowerCase());
  } catch (error) {
    if (codeOf(error) !== 'event_invalid') throw error;
    return String(moreOf(error)['reason']);
  }
};

export const readFact = (text: string, at: string): ReadFact => {
  const line = parsedJson(text);
  const fault = line === undefined ? 'it is not JSON' : faultOf(line);
  if (fault !== undefined) return { fault };
  const fact = line as WireFact;
  const event = eventOf(fact, at);
  if (typeof event === 'string') return { fault: `"data" does not fit ${fact.type}: ${event}` };
  if (namesAnother(fact.data, fact.tenant_id)) return { fault: '"data" names another tenant' };
  const bytes = sizeOf(event);
  if (typeof bytes === 'string') return { fault: bytes };
  return { tenantId: fact.tenant_id.toLowerCase(), event, bytes };
};
