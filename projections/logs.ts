import { auditLine, displayName, knownEntityTypes } from '../src/domain/audit-wording';
import { eventSchemas, type Recorded } from '../src/domain/events';
import { keyCollections, keyUsed } from './key-days';
import { change, changeTogether, type Change, type Document, type Projector, type Reader } from './projector';

/**
 * The audit log of a tenant. Rows are numbered as they are projected: per tenant, per entity type, per entity, and per
 * entity and type. Their times never go backwards. So a total is the last number, and both a page and a range of dates
 * are ranges of numbers.
 */
export interface LogRow {
  readonly id: string;
  readonly number: number;
  readonly type_number: number;
  readonly entity_number: number;
  /** Among the rows of this entity with this type. */
  readonly typed_entity_number: number;
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

/** The last number of a line. */
interface Head {
  readonly count: number;
}

/** For all rows of the tenant. The next row must not be earlier than the last one. */
interface TenantHead extends Head {
  readonly last_created_at: string;
}

/** The first MAX_TYPES entity types that occurred besides `knownEntityTypes`. */
interface EntityTypes {
  readonly values: readonly string[];
}

/** The key of the head of a line. What concerns one entity is stored together, because it begins with its id. */
export const headOf = (index: string, ...equal: readonly string[]): string =>
  `${JSON.stringify(equal)} ${index}`;

const TYPES = 'tenant';
/** Where the events are that have no row because the operator has set them aside, by id. */
const SET_ASIDE = 'log_set_aside';
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

/** A second copy of an event adds no row. */
const logged = (event: Recorded): readonly Change[] => {
  const { entityType, entityId, operation, message } = auditLine(event);
  const { actor, traceId } = event;
  const touches = [
    { collection: 'log_rows', key: event.id },
    { collection: 'log_entity_types', key: TYPES },
    { collection: 'log_heads', key: headOf('by_number') },
    { collection: 'log_heads', key: headOf('by_type', entityType) },
    { collection: 'log_heads', key: headOf('by_entity', entityId) },
    { collection: 'log_heads', key: headOf('by_typed_entity', entityId, entityType) },
  ];
  const next = (documents: readonly (Document | undefined)[]): readonly (Document | undefined)[] => {
    const [row, types, all, ofType, ofEntity, ofTypedEntity] = documents;
    if (row !== undefined) return documents;
    const created_at = laterOf(event.recordedAt, (all as TenantHead | undefined)?.last_created_at ?? '');
    const numbers = {
      number: nextOf(all),
      type_number: nextOf(ofType),
      entity_number: nextOf(ofEntity),
      typed_entity_number: nextOf(ofTypedEntity),
    };
    const newRow: LogRow = {
      id: event.id,
      ...numbers,
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
      ofType === undefined ? withType(types, entityType) : types,
      { count: numbers.number, last_created_at: created_at },
      { count: numbers.type_number },
      { count: numbers.entity_number },
      { count: numbers.typed_entity_number },
    ];
  };
  return [changeTogether(touches, next)];
};

export const logs: Projector = {
  name: 'logs',
  version: 2,
  streams: ['tenant', 'activity'],
  collections: [
    {
      name: 'log_rows',
      indexes: {
        by_number: ['number'],
        by_type: ['entity_type', 'type_number'],
        by_entity: ['entity_id', 'entity_number'],
        by_typed_entity: ['entity_id', 'entity_type', 'typed_entity_number'],
        by_trace: ['trace_id', 'number'],
        by_actor: ['actor_id', 'number'],
        by_operation: ['operation', 'number'],
      },
      // The rows of a tenant are in the order of time; all others are in the order of these.
      numbered: {
        by_number: 'created_at',
        by_type: 'number',
        by_entity: 'number',
        by_typed_entity: 'number',
      },
    },
    { name: 'log_entity_types', indexes: {} },
    { name: 'log_heads', indexes: {} },
    { name: SET_ASIDE, indexes: {} },
    ...keyCollections,
  ],
  onSetAside: ({ id, position }) => [change(SET_ASIDE, id, () => ({ position }))],
  on: {
    ...Object.fromEntries(Object.keys(eventSchemas).map((type) => [type, logged])),
    KeyUsed: (event) => [keyUsed(event), ...logged(event)],
  },
};

/** The row of an event, if it has one. */
export const findLog = async (
  reader: Reader,
  tenantId: string,
  eventId: string,
): Promise<LogRow | undefined> =>
  (await reader.get(tenantId, 'log_rows', eventId)) as unknown as LogRow | undefined;

/** Whether this event has a row. */
export const hasLog = async (reader: Reader, tenantId: string, eventId: string): Promise<boolean> =>
  (await findLog(reader, tenantId, eventId)) !== undefined;

/** Where in the log an event is that has a row or was set aside. Undefined: it is not applied yet, or does not exist. */
export const findLogPosition = async (
  reader: Pick<Reader, 'get'>,
  tenantId: string,
  eventId: string,
): Promise<string | undefined> => {
  const found =
    (await reader.get(tenantId, 'log_rows', eventId)) ?? (await reader.get(tenantId, SET_ASIDE, eventId));
  return (found as { readonly position: string } | undefined)?.position;
};

export interface EntityType {
  readonly display_name: string;
  readonly value: string;
}

/** `knownEntityTypes`, and the first MAX_TYPES others that occurred in the tenant's log, by display name. */
export const listEntityTypes = async (reader: Reader, tenantId: string): Promise<readonly EntityType[]> => {
  const found = (await reader.get(tenantId, 'log_entity_types', TYPES)) as EntityTypes | undefined;
  return [...knownEntityTypes, ...(found?.values ?? [])]
    .map((value) => ({ display_name: displayName(value), value }))
    .toSorted((a, b) => (a.display_name < b.display_name ? -1 : 1));
};
