import { auditLine, displayName, knownEntityTypes } from '../src/domain/audit-wording';
import { eventSchemas } from '../src/domain/event-schemas';
import type { Recorded } from '../src/domain/events';
import { keyUsed } from './key-days';
import { change, changeTogether, type Change, type Document, type Projector, type Reader } from './projector';

/**
 * The audit log of a tenant. Rows are numbered as they are projected: per tenant, entity type, entity, actor and
 * operation. Their times never go backwards. So a total is the last number, and both a page and a range of dates are
 * ranges of numbers.
 */
export interface LogRow {
  readonly id: string;
  readonly number: number;
  readonly type_number: number;
  readonly entity_number: number;
  /** Among the rows of this entity with this type. Left out: the same as `entity_number`. */
  readonly typed_entity_number?: number;
  readonly operation_number: number;
  readonly actor_number?: number;
  readonly position: string;
  readonly entity_type: string;
  readonly entity_id: string;
  readonly operation: string;
  readonly message: string;
  readonly actor_id?: string;
  readonly actor_type?: string;
  readonly trace_id?: string;
  readonly created_at: string;
}

/** What a row shows. */
export type ShownRow = Pick<
  LogRow,
  'id' | 'actor_id' | 'actor_type' | 'entity_type' | 'entity_id' | 'operation' | 'message' | 'created_at'
>;

/** The eight fields of the specification and the event's id. Undefined fields are omitted from the JSON. */
export const logView = (tenantId: string, row: ShownRow) => ({
  id: row.id,
  tenant_id: tenantId,
  actor_id: row.actor_id,
  actor_type: row.actor_type,
  entity_type: row.entity_type,
  entity_id: row.entity_id,
  operation: row.operation,
  message: row.message,
  created_at: row.created_at,
});

/** The last number of a sequence. */
interface Head {
  readonly count: number;
}

/** For all rows of the tenant. The next row must not be earlier than the last one. */
interface TenantHead extends Head {
  readonly last_created_at: string;
}

/**
 * For the rows of one entity. Nearly every id occurs with one type only, so that the rows of the type are the rows of
 * the entity. Only from the first row with another type on do rows also have a number within their own type.
 */
export interface EntityHead extends Head {
  /** The type of its first row. */
  readonly type: string;
  /** How many rows came before the first one with another type. Left out: there is none. */
  readonly alone?: number;
}

/** The first MAX_TYPES entity types that occurred besides `knownEntityTypes`. */
interface EntityTypes {
  readonly values: readonly string[];
}

/** The keys of heads. Heads of entities are in a collection of their own, by the entity's id. */
export const headOf = {
  tenant: 'tenant',
  type: (entityType: string): string => `type ${entityType}`,
  typedEntity: (entityType: string, entityId: string): string =>
    `entity ${entityType.length} ${entityType} ${entityId}`,
  actor: (actorId: string): string => `actor ${actorId}`,
  operation: (operation: string): string => `operation ${operation}`,
};

const TYPES = 'tenant';
/** Where the events are that have no row because the operator has set them aside, by id. */
const SET_ASIDE = 'set_aside';
const isKnown: ReadonlySet<string> = new Set(knownEntityTypes);
/** Entity types listed besides `knownEntityTypes`. */
export const MAX_TYPES = 1_000;
/** The longest that can be queried. */
const MAX_TRACE_ID_LENGTH = 128;

const laterOf = (a: string, b: string): string => (a > b ? a : b);

const nextOf = (head: Document | undefined): number => ((head as Head | undefined)?.count ?? 0) + 1;

const withType = (now: Document | undefined, entityType: string): Document | undefined => {
  if (isKnown.has(entityType)) return now;
  const { values } = (now as EntityTypes | undefined) ?? { values: [] };
  return values.length < MAX_TYPES ? { values: [...values, entityType] } : now;
};

/** The number of an entity's next row, its number within the type if that differs, and the new heads. */
const inEntity = (now: Document | undefined, typedNow: Document | undefined, type: string) => {
  const { count: last, ...head } = (now as EntityHead | undefined) ?? { count: 0, type };
  const count = last + 1;
  if (head.alone === undefined && head.type === type)
    return { numbers: { entity_number: count }, head: { count, type }, typed: typedNow };
  const alone = head.alone ?? last;
  const before = (typedNow as Head | undefined)?.count ?? (head.type === type ? alone : 0);
  return {
    numbers: { entity_number: count, typed_entity_number: before + 1 },
    head: { count, type: head.type, alone },
    typed: { count: before + 1 },
  };
};

/** A second copy of an event adds no row. */
const logged = (event: Recorded): readonly Change[] => {
  const { entityType, entityId, operation, message } = auditLine(event);
  const { actor, traceId } = event;
  const touches = [
    { collection: 'rows', key: event.id },
    { collection: 'entity_types', key: TYPES },
    { collection: 'heads', key: headOf.tenant },
    { collection: 'heads', key: headOf.type(entityType) },
    { collection: 'entities', key: entityId },
    { collection: 'heads', key: headOf.typedEntity(entityType, entityId) },
    { collection: 'heads', key: headOf.operation(operation) },
    ...(actor === undefined ? [] : [{ collection: 'heads', key: headOf.actor(actor.id) }]),
  ];
  const next = (documents: readonly (Document | undefined)[]): readonly (Document | undefined)[] => {
    const [row, types, tenant, type, entity, typed, ofOperation, ofActor] = documents;
    if (row !== undefined) return documents;
    const last = tenant as TenantHead | undefined;
    const number = nextOf(tenant);
    const created_at = laterOf(event.recordedAt, last?.last_created_at ?? '');
    const type_number = nextOf(type);
    const inLine = inEntity(entity, typed, entityType);
    const operation_number = nextOf(ofOperation);
    const actor_number = nextOf(ofActor);
    const newRow: LogRow = {
      id: event.id,
      number,
      type_number,
      ...inLine.numbers,
      operation_number,
      ...(actor === undefined ? {} : { actor_number }),
      position: event.position,
      entity_type: entityType,
      entity_id: entityId,
      operation,
      message,
      ...(actor === undefined ? {} : { actor_id: actor.id, actor_type: actor.type }),
      ...(traceId === undefined || traceId.length > MAX_TRACE_ID_LENGTH ? {} : { trace_id: traceId }),
      created_at,
    };
    return [
      newRow as unknown as Document,
      type === undefined ? withType(types, entityType) : types,
      { count: number, last_created_at: created_at },
      { count: type_number },
      inLine.head,
      inLine.typed,
      { count: operation_number },
      ...(actor === undefined ? [] : [{ count: actor_number }]),
    ];
  };
  return [changeTogether(touches, next)];
};

const sequence = (number: string, ...equal: readonly string[]) => ({
  equal,
  number,
  monotonicFields: ['created_at'],
});

export const logs: Projector = {
  name: 'logs',
  version: 4,
  streams: ['tenant', 'activity'],
  collections: [
    {
      name: 'rows',
      indexes: { by_trace: ['trace_id', 'number'] },
      sequences: {
        by_number: sequence('number'),
        by_type: sequence('type_number', 'entity_type'),
        by_entity: sequence('entity_number', 'entity_id'),
        by_typed_entity: sequence('typed_entity_number', 'entity_id', 'entity_type'),
        by_actor: sequence('actor_number', 'actor_id'),
        by_operation: sequence('operation_number', 'operation'),
      },
    },
    { name: 'entity_types', indexes: {} },
    { name: 'entities', indexes: {} },
    { name: 'heads', indexes: {} },
    { name: SET_ASIDE, indexes: {} },
  ],
  onSetAside: ({ id, position }) => [change(SET_ASIDE, id, () => ({ position }))],
  on: {
    ...Object.fromEntries(Object.keys(eventSchemas).map((type) => [type, logged])),
    KeyUsed: (event) => [...logged(event), keyUsed(event)],
  },
};

/** Whether this event has a row. */
export const hasLog = async (reader: Reader, tenantId: string, eventId: string): Promise<boolean> =>
  (await reader.get(tenantId, 'rows', eventId)) !== undefined;

/** Where in the log an event is that has a row or was set aside. Undefined: it is not applied yet, or does not exist. */
export const findLogPosition = async (
  reader: Pick<Reader, 'get'>,
  tenantId: string,
  eventId: string,
): Promise<string | undefined> => {
  const found =
    (await reader.get(tenantId, 'rows', eventId)) ?? (await reader.get(tenantId, SET_ASIDE, eventId));
  return (found as { readonly position: string } | undefined)?.position;
};

export interface EntityType {
  readonly display_name: string;
  readonly value: string;
}

/** `knownEntityTypes`, and the first MAX_TYPES others that occurred in the tenant's log, by display name. */
export const listEntityTypes = async (reader: Reader, tenantId: string): Promise<readonly EntityType[]> => {
  const found = (await reader.get(tenantId, 'entity_types', TYPES)) as EntityTypes | undefined;
  return [...knownEntityTypes, ...(found?.values ?? [])]
    .map((value) => ({ display_name: displayName(value), value }))
    .toSorted((a, b) => (a.display_name < b.display_name ? -1 : 1));
};
