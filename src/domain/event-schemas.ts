import { accessFaults, COUNTED_ADDRESSES, NAMED_ADDRESSES } from './access';
import type { EventType, OperatorEvent, StreamKind } from './events';
import { factTypes, isFactType, type EntityFactType } from './facts';
import { applicationTypes } from './permissions';

type Schema = Readonly<Record<string, unknown>>;

interface EventVersion {
  /** The first log format (`formats.ts`) in which it may be written. */
  readonly since: number;
  readonly schema: Schema;
}

const since = (format: number, schema: Schema): EventVersion => ({ since: format, schema });

const moment: Schema = { type: 'string', format: 'date-time' };
const uuid: Schema = { type: 'string', format: 'uuid' };
const name: Schema = { type: 'string', minLength: 1, maxLength: 200 };
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
const entityFact = [since(1, fact())];
const entityFacts = Object.fromEntries(
  factTypes.filter((type) => type !== 'ActivityReported').map((type) => [type, entityFact]),
) as unknown as Readonly<Record<EntityFactType, readonly EventVersion[]>>;

const key = {
  keyId: uuid,
  applicationId: uuid,
  digest: { type: 'string', pattern: '^[0-9a-f]{64}$' },
  expiresAt: moment,
};

/** JSON Schemas of event data, per type and version, the newest version last. */
export const eventSchemas: Readonly<Record<EventType, readonly EventVersion[]>> = {
  TenantCreated: [
    since(1, data({ name, ownerId: uuid, settings, includedMonthlyActiveTokens: wholeNumber })),
  ],
  TenantUpdated: [since(1, data({ name, settings }))],
  TenantPlanChanged: [since(1, data({ includedMonthlyActiveTokens: wholeNumber }))],
  TenantDeleted: [since(1, data({}))],
  ApplicationCreated: [
    since(1, data({ applicationId: uuid, name, applicationType: { enum: applicationTypes }, permissions })),
  ],
  ApplicationRenamed: [since(1, data({ applicationId: uuid, name }))],
  ApplicationPermissionsSet: [since(1, data({ applicationId: uuid, permissions }))],
  ApplicationDeleted: [since(1, data({ applicationId: uuid }))],
  KeyAdded: [since(1, data(key, ['expiresAt'])), since(2, data({ ...key, name }, ['expiresAt', 'name']))],
  KeyExpirySet: [since(2, data({ keyId: uuid, applicationId: uuid, expiresAt: moment }))],
  KeyRevoked: [since(1, data({ keyId: uuid, applicationId: uuid }))],
  ...entityFacts,
  ActivityReported: [since(1, fact({ entityType: word, operation: word }))],
  AccessRefused: [
    since(
      1,
      data(
        {
          applicationId: uuid,
          keyId: uuid,
          faults: { type: 'array', items: { enum: accessFaults }, minItems: 1, uniqueItems: true },
          permissions,
          count: { type: 'integer', minimum: 1 },
          addressCount: { type: 'integer', minimum: 1, maximum: COUNTED_ADDRESSES },
          addresses: {
            type: 'array',
            items: { type: 'string', maxLength: 64 },
            minItems: 1,
            maxItems: NAMED_ADDRESSES,
          },
          firstAt: moment,
          lastAt: moment,
        },
        ['permissions'],
      ),
    ),
  ],
  KeyUsed: [
    since(
      3,
      data({
        applicationId: uuid,
        keyId: uuid,
        date: { type: 'string', format: 'date' },
        operations: { type: 'object', additionalProperties: wholeNumber },
        failed: wholeNumber,
        eventsGivenOut: wholeNumber,
        firstAt: moment,
        lastAt: moment,
      }),
    ),
  ],
};

const parkedEvent = since(
  1,
  data({
    eventId: uuid,
    eventTenantId: uuid,
    projections: { type: 'array', items: { type: 'string' }, minItems: 1 },
    reason: { type: 'string' },
  }),
);

export const operatorEventSchemas: Readonly<Record<OperatorEvent['type'], readonly EventVersion[]>> = {
  EventSetAside: [parkedEvent],
  GapAccepted: [parkedEvent],
};

export const isEventType = (text: string): text is EventType => Object.hasOwn(eventSchemas, text);

/** The kind of stream that a type belongs in; in any other stream it is a bad event. */
export const streamKindOf = (type: EventType): StreamKind =>
  isFactType(type) || type === 'AccessRefused' || type === 'KeyUsed' ? 'activity' : 'tenant';

export const currentVersion = (type: EventType): number => eventSchemas[type].length;
