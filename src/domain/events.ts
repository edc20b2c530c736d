import { refusalReasons, type KeyUseEvent } from './key-use';
import { applicationTypes, type ApplicationType } from './permissions';

export interface TenantSettings {
  readonly fingerprintTokens: boolean;
  readonly deduplicateTokens: boolean;
}

/** What happened to a tenant, its Applications and their keys, by type. */
interface TenantEvents {
  TenantCreated: {
    name: string;
    ownerId: string;
    settings: TenantSettings;
    includedMonthlyActiveTokens: number;
  };
  TenantUpdated: { name: string; settings: TenantSettings };
  TenantPlanChanged: { includedMonthlyActiveTokens: number };
  TenantDeleted: Record<string, never>;
  ApplicationCreated: {
    applicationId: string;
    name: string;
    applicationType: ApplicationType;
    permissions: readonly string[];
  };
  ApplicationUpdated: { applicationId: string; name: string; permissions: readonly string[] };
  ApplicationDeleted: { applicationId: string };
  /** The digest is the SHA-256 of the key in hex. The key itself is never kept. */
  KeyAdded: {
    keyId: string;
    applicationId: string;
    digest: string;
    expiresAt?: string | undefined;
    name?: string | undefined;
  };
  KeyExpirySet: { keyId: string; applicationId: string; expiresAt: string };
  KeyRevoked: { keyId: string; applicationId: string };
}

/** The stream `tenant-<tenantId>`. */
export type TenantEvent = {
  [T in keyof TenantEvents]: { readonly type: T; readonly data: Readonly<TenantEvents[T]> };
}[keyof TenantEvents];

/** A tenant has one stream of decisions about it, and one of what other services report about it. */
export type StreamKind = 'tenant' | 'activity';

/** An event is skipped; or it is applied although events before it are missing. */
interface ParkedEventReleased {
  readonly type: 'EventSetAside' | 'GapAccepted';
  readonly data: { readonly eventId: string; readonly eventTenantId: string; readonly reason: string };
}

/** What a service may do: report facts, and ask whether keys are valid. */
export const serviceRights = ['facts', 'verify'] as const;
export type ServiceRight = (typeof serviceRights)[number];

/** What happened to the programs of the operator that serve all tenants, and to their keys, by type. */
interface ServiceEvents {
  ServiceAdded: { serviceId: string; name: string; may: readonly ServiceRight[] };
  /** The digest is the SHA-256 of the key in hex. */
  ServiceKeyAdded: { serviceId: string; keyId: string; digest: string; expiresAt?: string | undefined };
  ServiceKeyRevoked: { serviceId: string; keyId: string };
  ServiceRevoked: { serviceId: string };
}

export type ServiceEvent = {
  [T in keyof ServiceEvents]: { readonly type: T; readonly data: Readonly<ServiceEvents[T]> };
}[keyof ServiceEvents];

/** What the operator does besides deciding about tenants: the stream `operator`. */
export type OperatorEvent = ParkedEventReleased | ServiceEvent;

/** The stream `activity-<tenantId>`. */
export type ActivityEvent = FactEvent | KeyUseEvent;

export type LedgerEvent = TenantEvent | ActivityEvent;

export type EventType = LedgerEvent['type'];

export interface Actor {
  readonly type: 'application' | 'user';
  readonly id: string;
  /** That of the Application when it was decided, or when its key was used. It may have another one now. */
  readonly name?: string | undefined;
  /** The OS user who ran an operator command. */
  readonly osUser?: string;
}

/** Where a request came from. Personal data: no decision or read model depends on it. */
export interface Client {
  readonly address: string;
  readonly userAgent?: string;
  /** The id of the service that says so. Absent: the request itself came from there. */
  readonly reportedBy?: string | undefined;
}

/** What a key did from one address, with the last user agent; without one, from all further addresses. Personal data, too. */
export interface ClientUse extends Partial<Client> {
  readonly requests: number;
  readonly firstAt: string;
  readonly lastAt: string;
}

/** A field that an event changes, named as the API names it. Null: there is no value. */
export interface FieldChange {
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}

/** What the log knows about an event besides its type and data. */
export interface Circumstances {
  readonly id: string;
  readonly tenantId: string;
  readonly revision: number;
  readonly position: string;
  /** The time that the event itself names, or else when it was recorded. ISO 8601, UTC. */
  readonly at: string;
  readonly recordedAt: string;
  readonly actor?: Actor;
  /** The API key of the request that caused it. */
  readonly keyId?: string;
  readonly traceId?: string;
  readonly idempotency?: Idempotency;
  /** What a decision changed. Reported facts have none. */
  readonly changes?: readonly FieldChange[];
}

/** Stored with the event of an idempotent request, so that a retry gets the same answer. */
export interface Idempotency {
  readonly key: string;
  /** Method and path, for example `PUT /tenants/self`. */
  readonly scope: string;
  /** SHA-256 of the request's body in hex. */
  readonly hash: string;
}

export type Recorded<E = LedgerEvent> = E & Circumstances;

/** An event that a decision caused, with what the state after it and the response depend on. */
export type Caused<T extends TenantEvent['type'] = TenantEvent['type']> = Extract<
  TenantEvent,
  { readonly type: T }
> &
  Pick<Circumstances, 'tenantId' | 'revision' | 'at' | 'actor' | 'idempotency'>;

/** Facts are what other services report to have done. Each entity is combined with each operation. */
const factEntities = ['Token', 'Card', 'Bank', 'Reactor', 'Proxy'] as const;
export const factOperations = ['Created', 'Read', 'Used', 'Updated', 'Deleted'] as const;

export type FactEntity = (typeof factEntities)[number];
export type FactOperation = (typeof factOperations)[number];
export type EntityFactType = `${FactEntity}${FactOperation}`;

export interface EntityFactData {
  readonly entityId: string;
  /** When it happened, by the reporter's clock. Defaults to when it was recorded. */
  readonly occurredAt?: string;
  /** Its text in the audit log. */
  readonly message?: string;
  readonly [more: string]: unknown;
}

export interface ActivityData extends EntityFactData {
  readonly entityType: string;
  readonly operation: string;
}

/** Stored in the stream `activity-<tenantId>`. No decision depends on facts. */
export type FactEvent =
  | { [T in EntityFactType]: { readonly type: T; readonly data: EntityFactData } }[EntityFactType]
  | { readonly type: 'ActivityReported'; readonly data: ActivityData };

export type FactType = FactEvent['type'];

const parts = new Map<string, { readonly entity: FactEntity; readonly operation: FactOperation }>(
  factEntities.flatMap((entity) =>
    factOperations.map((operation) => [`${entity}${operation}`, { entity, operation }] as const),
  ),
);

export const entityFactTypes = [...parts.keys()] as readonly EntityFactType[];

export const isFactType = (type: string): type is FactType => type === 'ActivityReported' || parts.has(type);

/** Splits the type of an entity fact into entity and operation. */
export const factPartsOf = (type: EntityFactType) =>
  parts.get(type) as NonNullable<ReturnType<typeof parts.get>>;

type Schema = Readonly<Record<string, unknown>>;

const moment: Schema = { type: 'string', format: 'date-time' };
const uuid: Schema = { type: 'string', format: 'uuid' };
const name: Schema = { type: 'string', minLength: 1, maxLength: 200 };
const applicationType: Schema = { enum: applicationTypes };
const digest: Schema = { type: 'string', pattern: '^[0-9a-f]{64}$' };
const permissions: Schema = { type: 'array', items: { type: 'string' }, uniqueItems: true };
const wholeNumber: Schema = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER };

const data = (properties: Record<string, Schema>, optional: readonly string[] = []): Schema => ({
  type: 'object',
  properties: { tenantId: uuid, ...properties },
  required: Object.keys(properties).filter((key) => !optional.includes(key)),
  additionalProperties: false,
});

const settings: Schema = {
  type: 'object',
  properties: { fingerprintTokens: { type: 'boolean' }, deduplicateTokens: { type: 'boolean' } },
  required: ['fingerprintTokens', 'deduplicateTokens'],
  additionalProperties: false,
};

/** Other services report facts, so unknown properties are kept and ignored. */
const fact = (properties: Record<string, Schema> = {}): Schema => ({
  type: 'object',
  properties: {
    tenantId: uuid,
    entityId: { type: 'string', minLength: 1, maxLength: 250 },
    occurredAt: moment,
    message: { type: 'string' },
    ...properties,
  },
  required: ['entityId', ...Object.keys(properties)],
});

const word: Schema = { type: 'string', pattern: '^[A-Za-z][A-Za-z0-9_-]{0,63}$' };

/** One object shared by all of them, so it is compiled once. */
const entityFact = fact();
const entityFacts: object = Object.fromEntries(entityFactTypes.map((type) => [type, entityFact]));

const refusals = Object.fromEntries(refusalReasons.map((reason) => [reason, wholeNumber]));
const ofKey = { keyId: uuid, applicationId: uuid };

/** The JSON Schema of the data of each event type, in its current version. */
export const eventSchemas: Readonly<Record<EventType, Schema>> = {
  TenantCreated: data({ name, ownerId: uuid, settings, includedMonthlyActiveTokens: wholeNumber }),
  TenantUpdated: data({ name, settings }),
  TenantPlanChanged: data({ includedMonthlyActiveTokens: wholeNumber }),
  TenantDeleted: data({}),
  ApplicationCreated: data({ applicationId: uuid, name, applicationType, permissions }),
  ApplicationUpdated: data({ applicationId: uuid, name, permissions }),
  ApplicationDeleted: data({ applicationId: uuid }),
  KeyAdded: data({ ...ofKey, digest, expiresAt: moment, name }, ['expiresAt', 'name']),
  KeyExpirySet: data({ ...ofKey, expiresAt: moment }),
  KeyRevoked: data(ofKey),
  ...(entityFacts as Readonly<Record<EntityFactType, Schema>>),
  ActivityReported: fact({ entityType: word, operation: word }),
  KeyUsed: data({
    ...ofKey,
    date: { type: 'string', format: 'date' },
    operations: { type: 'object', additionalProperties: wholeNumber },
    refusals: { type: 'object', properties: refusals, additionalProperties: false },
    missingPermissions: permissions,
    eventsGivenOut: wholeNumber,
    firstAt: moment,
    lastAt: moment,
  }),
};

const rights = { type: 'array', items: { enum: serviceRights }, minItems: 1, uniqueItems: true };
const parkedEvent = data({ eventId: uuid, eventTenantId: uuid, reason: { type: 'string' } });

export const operatorEventSchemas: Readonly<Record<OperatorEvent['type'], Schema>> = {
  EventSetAside: parkedEvent,
  GapAccepted: parkedEvent,
  ServiceAdded: data({ serviceId: uuid, name, may: rights }),
  ServiceKeyAdded: data({ serviceId: uuid, keyId: uuid, digest, expiresAt: moment }, ['expiresAt']),
  ServiceKeyRevoked: data({ serviceId: uuid, keyId: uuid }),
  ServiceRevoked: data({ serviceId: uuid }),
};

export const isEventType = (text: string): text is EventType => Object.hasOwn(eventSchemas, text);

export const isOperatorEventType = (text: string): text is OperatorEvent['type'] =>
  Object.hasOwn(operatorEventSchemas, text);

/** Also of a type that only a newer program knows: it may end a service or a key. */
export const isAboutServices = (type: string): boolean => type.startsWith('Service');

/** The kind of stream that a type belongs in; in any other stream it is a bad event. */
export const streamKindOf = (type: EventType): StreamKind =>
  isFactType(type) || type === 'KeyUsed' ? 'activity' : 'tenant';

/** Converts data of version n to version n + 1. */
type Upcaster = (stored: Readonly<Record<string, unknown>>) => Record<string, unknown>;

type VersionedType = EventType | OperatorEvent['type'];

/** This is the only place that knows old versions of events. So far every type has one version. */
const upcasters: Partial<Record<VersionedType, readonly Upcaster[]>> = {};

export const currentVersion = (type: VersionedType): number => (upcasters[type]?.length ?? 0) + 1;

export const upcast = (
  type: EventType,
  version: number,
  stored: Readonly<Record<string, unknown>>,
  table = upcasters,
): Readonly<Record<string, unknown>> =>
  table[type]?.slice(version - 1).reduce((current, next) => next(current), stored) ?? stored;
