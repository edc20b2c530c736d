import type { EventType, OperatorEvent, StreamKind } from './events';
import { entityFactTypes, isFactType, type EntityFactType } from './facts';
import { refusalReasons } from './key-use';
import { applicationTypes } from './permissions';

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
const entityFacts = Object.fromEntries(
  entityFactTypes.map((type) => [type, entityFact]),
) as unknown as Readonly<Record<EntityFactType, Schema>>;

/** The JSON Schema of the data of each event type, in its current version. */
export const eventSchemas: Readonly<Record<EventType, Schema>> = {
  TenantCreated: data({ name, ownerId: uuid, settings, includedMonthlyActiveTokens: wholeNumber }),
  TenantUpdated: data({ name, settings }),
  TenantPlanChanged: data({ includedMonthlyActiveTokens: wholeNumber }),
  TenantDeleted: data({}),
  ApplicationCreated: data({ applicationId: uuid, name, applicationType, permissions }),
  ApplicationUpdated: data({ applicationId: uuid, name, permissions }),
  ApplicationDeleted: data({ applicationId: uuid }),
  KeyAdded: data({ keyId: uuid, applicationId: uuid, digest, expiresAt: moment, name }, [
    'expiresAt',
    'name',
  ]),
  KeyExpirySet: data({ keyId: uuid, applicationId: uuid, expiresAt: moment }),
  KeyRevoked: data({ keyId: uuid, applicationId: uuid }),
  ...entityFacts,
  ActivityReported: fact({ entityType: word, operation: word }),
  KeyUsed: data({
    applicationId: uuid,
    keyId: uuid,
    date: { type: 'string', format: 'date' },
    operations: { type: 'object', additionalProperties: wholeNumber },
    refusals: {
      type: 'object',
      properties: Object.fromEntries(refusalReasons.map((reason) => [reason, wholeNumber])),
      additionalProperties: false,
    },
    missingPermissions: permissions,
    eventsGivenOut: wholeNumber,
    firstAt: moment,
    lastAt: moment,
  }),
};

const parkedEvent = data({ eventId: uuid, eventTenantId: uuid, reason: { type: 'string' } });

export const operatorEventSchemas: Readonly<Record<OperatorEvent['type'], Schema>> = {
  EventSetAside: parkedEvent,
  GapAccepted: parkedEvent,
};

export const isEventType = (text: string): text is EventType => Object.hasOwn(eventSchemas, text);

export const isOperatorEventType = (text: string): text is OperatorEvent['type'] =>
  Object.hasOwn(operatorEventSchemas, text);

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
