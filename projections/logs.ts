import { auditLine, displayName, knownEntityTypes } from '../src/domain/audit-wording';
import { eventSchemas } from '../src/domain/event-schemas';
import type { Recorded } from '../src/domain/events';
import { changeTogether, type Change, type Document, type Projector, type Reader } from './projector';

/**
 * The audit log of a tenant. Rows are numbered as they are projected, per tenant and per entity type, and their time
 * never runs backwards: so totals are last numbers, a page is a range of numbers, and so is a range of dates.
 */
export interface LogRow {
  readonly id: string;
  readonly number: number;
  readonly type_number: number;
  readonly position: string;
  readonly entity_type: string;
  readonly entity_id: string;
  readonly operation: string;
  readonly message: string;
  readonly actor_id?: string;
  readonly actor_type?: string;
  readonly created_at: string;
}

/** The last number, and the time that the next row must not be before. */
interface Head {
  readonly count: number;
  readonly last_created_at: string;
}

interface TypeHead {
  readonly entity_type: string;
  readonly count: number;
}

/** The key of the one head of a tenant. */
export const TENANT = 'tenant';
const MOST_TYPES = 10_000;

const laterOf = (a: string, b: string): string => (a > b ? a : b);

/** The second copy of an event is no row. */
const logged = (event: Recorded): readonly Change[] => {
  const line = auditLine(event);
  const touches = [
    { collection: 'rows', key: event.id },
    { collection: 'heads', key: TENANT },
    { collection: 'types', key: line.entityType },
  ];
  return [
    changeTogether(touches, ([row, headNow, typeNow]) => {
      if (row !== undefined) return [row, headNow, typeNow];
      const head = headNow as Head | undefined;
      const type = typeNow as TypeHead | undefined;
      const created_at = laterOf(event.recordedAt, head?.last_created_at ?? '');
      const next: LogRow = {
        id: event.id,
        number: (head?.count ?? 0) + 1,
        type_number: (type?.count ?? 0) + 1,
        position: event.position,
        entity_type: line.entityType,
        entity_id: line.entityId,
        operation: line.operation,
        message: line.message,
        ...(event.actor === undefined ? {} : { actor_id: event.actor.id, actor_type: event.actor.type }),
        created_at,
      };
      return [
        next as unknown as Document,
        { count: next.number, last_created_at: created_at },
        { entity_type: line.entityType, count: next.type_number },
      ];
    }),
  ];
};

export const logs: Projector = {
  name: 'logs',
  version: 2,
  streams: ['tenant', 'activity'],
  collections: [
    {
      name: 'rows',
      indexes: {
        by_number: ['number'],
        by_type: ['entity_type', 'type_number'],
        by_entity: ['entity_id', 'number', 'entity_type'],
      },
    },
    { name: 'heads', indexes: {} },
    { name: 'types', indexes: {} },
  ],
  on: Object.fromEntries(Object.keys(eventSchemas).map((type) => [type, logged])),
};

export interface EntityType {
  readonly display_name: string;
  readonly value: string;
}

/** What every tenant knows and whatever else occurs in its log. */
export const listEntityTypes = async (reader: Reader, tenantId: string): Promise<readonly EntityType[]> => {
  const found = (await reader.find(tenantId, 'types', {
    limit: MOST_TYPES,
  })) as unknown as readonly TypeHead[];
  const values = new Set([...knownEntityTypes, ...found.map((type) => type.entity_type)]);
  return [...values]
    .map((value) => ({ display_name: displayName(value), value }))
    .toSorted((a, b) => (a.display_name < b.display_name ? -1 : 1));
};
