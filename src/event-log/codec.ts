import type { ValidateFunction } from 'ajv';
import { randomUUID } from 'node:crypto';
import { yieldToEventLoop } from '../async/clock';
import * as domain from '../domain/events';
import { canonicalTime } from '../domain/texts';
import { fault, messageOf } from '../fault';
import type { LoggedEvent, NewEvent } from './event-log';
import type { LedgerLog, Streams } from './streams';

/** A stored event as the domain sees it. `bad` is never skipped silently: it parks its tenant. */
export type Decoded =
  | { readonly status: 'good'; readonly kind: 'tenant'; readonly event: domain.Recorded<domain.TenantEvent> }
  | {
      readonly status: 'good';
      readonly kind: 'activity';
      readonly event: domain.Recorded<domain.ActivityEvent>;
    }
  | {
      readonly status: 'bad';
      readonly kind: domain.StreamKind;
      readonly tenantId: string;
      readonly reason: string;
    }
  | { readonly status: 'foreign' };

const EARLIEST = Date.parse('0000-01-01T00:00:00Z');
const LATEST = Date.parse('9999-12-31T23:59:59.999Z');
const isOrderable = (time: number): boolean => time >= EARLIEST && time <= LATEST;

/**
 * Loaded at first use. Tests check that the schemas are valid; checking them here would cost more than compiling them.
 * Optimizing the code makes compiling a third longer and validating no faster.
 */
const createAjv = () => {
  const { default: Ajv } = require('ajv') as typeof import('ajv');
  const { default: addFormats } = require('ajv-formats') as typeof import('ajv-formats');
  const unchecked = { meta: false, validateSchema: false, code: { optimize: false } };
  const ajv = new Ajv({ ...unchecked, strict: true, unicodeRegExp: false });
  addFormats(ajv);
  // Stricter than RFC 3339: a Date cannot represent leap seconds or offsets without minutes, and times outside the years
  // 0000 to 9999 (in UTC) do not sort as text.
  const rfc3339 = ajv.formats['date-time'] as { validate(text: string): boolean };
  return ajv.addFormat('date-time', (text) => rfc3339.validate(text) && isOrderable(Date.parse(text)));
};

let ajv: ReturnType<typeof createAjv> | undefined;

const uuid = { type: 'string', format: 'uuid' };
const text = { type: 'string' };
const moment = { type: 'string', format: 'date-time' };
const wholeNumber = { type: 'integer', minimum: 0 };
const client = { address: text, userAgent: text, reportedBy: text };
const actor = { type: { enum: ['application', 'user'] }, id: uuid, name: text, osUser: text };
const use = { ...client, requests: wholeNumber, firstAt: moment, lastAt: moment };

const object = (properties: object, ...required: string[]) => ({ type: 'object', properties, required });
const listOf = (items: object) => ({ type: 'array', items });

const metadataSchema = object({
  version: { type: 'integer', minimum: 1 },
  at: moment,
  keyId: uuid,
  traceId: text,
  actor: object(actor, 'type', 'id'),
  client: object(client, 'address'),
  clients: listOf(object(use, 'requests', 'firstAt', 'lastAt')),
  idempotency: object({ key: text, scope: text, hash: text }, 'key', 'scope', 'hash'),
  changes: listOf(object({ field: text, from: {}, to: {} }, 'field', 'from', 'to')),
});

/** Recorded with every event, besides its schema version. */
export interface Metadata {
  readonly at: string;
  readonly actor?: domain.Actor | undefined;
  readonly keyId?: string | undefined;
  readonly traceId?: string | undefined;
  readonly client?: domain.Client | undefined;
  /** Where the requests came from that a `KeyUsed` sums up. */
  readonly clients?: readonly domain.ClientUse[] | undefined;
  readonly idempotency?: domain.Idempotency | undefined;
  /** What a decision changed. */
  readonly changes?: readonly domain.FieldChange[] | undefined;
  /** The service that reported a fact over HTTP. */
  readonly service?: { readonly id: string; readonly name: string } | undefined;
}

type StoredMetadata = Partial<Metadata> & { readonly version?: number };

/** Other services may append facts without metadata. */
const metadataOf = ({ metadata = {} }: LoggedEvent): unknown => metadata;

const validators = new Map<object, ValidateFunction>();

/** Compiles schemas at first use, so that startup does not pay for all of them. */
const faultBy = (schema: object, value: unknown): string | undefined => {
  ajv ??= createAjv();
  const validate = validators.get(schema) ?? ajv.compile(schema);
  validators.set(schema, validate);
  return validate(value) ? undefined : ajv.errorsText(validate.errors, { dataVar: '' }).trim();
};

/**
 * Compiles the schemas of events one by one ahead of time. Otherwise the first requests to fold a tenant or to stream its
 * events would block the thread for 40 ms.
 */
export const compileEventSchemas = async (): Promise<void> => {
  const schemas = Object.values({ ...domain.eventSchemas, ...domain.operatorEventSchemas });
  for (const schema of new Set([metadataSchema, ...schemas])) {
    faultBy(schema, {});
    await yieldToEventLoop();
  }
};

const schemaOf = (type: domain.LedgerEvent['type'] | domain.OperatorEvent['type']): object =>
  domain.isEventType(type) ? domain.eventSchemas[type] : domain.operatorEventSchemas[type];

/**
 * Encodes an event for appending. Invalid data must never be written, since it would park its tenant: it throws
 * `event_invalid`, with the reason in `more.reason`.
 */
export const encode = (
  { type, data }: domain.LedgerEvent | domain.OperatorEvent,
  metadata: Metadata,
  id: string = randomUUID(),
): NewEvent => {
  const reason = faultBy(schemaOf(type), data);
  if (reason !== undefined)
    throw fault('event_invalid', `The data of a ${type} does not fit its schema: ${reason}.`, { reason });
  return { id, type, data, metadata: { ...metadata, version: domain.currentVersion(type) } };
};

/** Case-insensitive, as UUIDs are. */
export const namesAnother = (
  { tenantId: named }: { readonly tenantId?: unknown },
  tenantId: string,
): boolean => typeof named === 'string' && named.toLowerCase() !== tenantId.toLowerCase();

const reasonAgainst = (event: LoggedEvent, kind: domain.StreamKind, tenantId: string): string | undefined => {
  if (!domain.isEventType(event.type)) return `The event type ${event.type} is unknown.`;
  if (domain.streamKindOf(event.type) !== kind)
    return `A ${event.type} does not belong in the stream ${event.stream}.`;
  const metadataFault = Buffer.isBuffer(event.metadata)
    ? 'not JSON'
    : faultBy(metadataSchema, metadataOf(event));
  if (metadataFault !== undefined) return `The metadata is wrong: ${metadataFault}.`;
  const { version = 1 } = metadataOf(event) as StoredMetadata;
  if (version > domain.currentVersion(event.type)) return `Version ${version} of ${event.type} is unknown.`;
  if (Buffer.isBuffer(event.data)) return 'The data is not JSON.';
  const data = domain.upcast(event.type, version, event.data as Record<string, unknown>);
  const dataFault = faultBy(domain.eventSchemas[event.type], data);
  if (dataFault !== undefined)
    return `The data does not fit version ${version} of ${event.type}: ${dataFault}.`;
  return namesAnother(data, tenantId)
    ? `The data names another tenant, ${String(data['tenantId'])}.`
    : undefined;
};

const CAUSES = ['actor', 'keyId', 'traceId', 'idempotency', 'changes'] as const;

const recorded = (logged: LoggedEvent, tenantId: string): domain.Recorded => {
  const { recordedAt } = logged;
  const metadata = metadataOf(logged) as StoredMetadata;
  const { version = 1, at = recordedAt } = metadata;
  const type = logged.type as domain.EventType;
  const event: Record<string, unknown> = {
    type,
    data: domain.upcast(type, version, logged.data as Record<string, unknown>),
    id: logged.id,
    tenantId,
    revision: logged.revision,
    position: logged.position,
    at: canonicalTime(at),
    recordedAt,
  };
  for (const name of CAUSES) if (metadata[name] !== undefined) event[name] = metadata[name];
  return event as unknown as domain.Recorded;
};

/** The tenant and kind of an event's stream; undefined if the stream is not one of ours. */
export type Owner = ReturnType<Streams['parse']>;

export const decode = (
  logged: LoggedEvent,
  streams: Streams,
  owner = streams.parse(logged.stream),
): Decoded => {
  if (owner === undefined) return { status: 'foreign' };
  try {
    const reason = reasonAgainst(logged, owner.kind, owner.tenantId);
    if (reason !== undefined) return { status: 'bad', ...owner, reason };
    return { status: 'good', kind: owner.kind, event: recorded(logged, owner.tenantId) } as Decoded;
  } catch (error) {
    return { status: 'bad', ...owner, reason: messageOf(error) };
  }
};

/** Undefined if it cannot be read: then nothing is set aside, and no service is known. */
export const operatorEventOf = ({ type, data, metadata }: LoggedEvent): domain.OperatorEvent | undefined => {
  if (!domain.isOperatorEventType(type) || Buffer.isBuffer(data)) return undefined;
  const { version = 1 } = (metadata ?? {}) as StoredMetadata;
  const isReadable =
    version === domain.currentVersion(type) && faultBy(domain.operatorEventSchemas[type], data) === undefined;
  return isReadable ? ({ type, data } as domain.OperatorEvent) : undefined;
};

/** What the operator has set aside. It is read before projecting, rebuilding and verifying. */
export interface SetAside {
  /** Whether to skip this event. Its id may occur in other tenants, too. */
  readonly event: (tenantId: string, eventId: string) => boolean;
  /** Whether to apply this event although events before it are missing. */
  readonly gapBefore: (tenantId: string, eventId: string) => boolean;
}

/** An unreadable event of the operator sets nothing aside: the tenant visibly stays parked. */
export const readSetAside = async ({ log, streams }: LedgerLog): Promise<SetAside> => {
  const entries = new Set<string>();
  for await (const batch of log.readStream(streams.operator()))
    for (const logged of batch) {
      const event = operatorEventOf(logged);
      if (event !== undefined && 'eventId' in event.data)
        entries.add(`${event.type} ${event.data.eventTenantId} ${event.data.eventId}`);
    }
  const has = (type: domain.OperatorEvent['type']) => (tenantId: string, eventId: string) =>
    entries.size > 0 && entries.has(`${type} ${tenantId} ${eventId}`);
  return { event: has('EventSetAside'), gapBefore: has('GapAccepted') };
};
