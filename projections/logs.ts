import {
  auditLine,
  displayName,
  knownEntityTypes,
  setAsideLine,
  sourceOf,
  type AuditLine,
  type Source,
} from '../src/domain/audit-wording';
import { eventSchemas, streamKindOf, type EntityFactData, type Recorded } from '../src/domain/events';
import { canonicalTime, MAX_NAME_LENGTH } from '../src/domain/texts';
import { appended, type Hash } from '../src/evidence/tree';
import { keyCollections, keyUsed, later } from './key-days';
import {
  carriedIn,
  changeTogether,
  type Change,
  type Document,
  type Leaf,
  type LineReference,
  type Projector,
  type Reader,
  type Reference,
} from './projector';

interface RowContent {
  readonly id: string;
  readonly position: string;
  readonly entity_type: string;
  readonly entity_id: string;
  readonly operation: string;
  readonly message: string;
  readonly actor_id?: string | undefined;
  readonly actor_type?: string | undefined;
  readonly actor_name?: string | undefined;
  readonly trace_id?: string | undefined;
  readonly source: Source;
  /** When a fact says that it happened, in the canonical form. */
  readonly occurred_at?: string | undefined;
}

/**
 * Rows are numbered in lines, as they are projected: those that are equal in some fields, and all of a tenant. By index;
 * the first ones most likely have the fewest rows. The last row of a line is its head: its number is their total, and
 * both a page and a range of dates are ranges of numbers.
 */
export const rowLines = {
  by_trace: { equal: ['trace_id'], number: 'trace_number' },
  by_typed_entity: { equal: ['entity_id', 'entity_type'], number: 'typed_id_number' },
  by_entity: { equal: ['entity_id'], number: 'entity_number' },
  by_actor: { equal: ['actor_id'], number: 'actor_number' },
  by_operation: { equal: ['operation'], number: 'operation_number' },
  by_type: { equal: ['entity_type'], number: 'type_number' },
  by_source: { equal: ['source'], number: 'source_number' },
  by_number: { equal: [], number: 'number' },
} as const satisfies Record<
  string,
  { readonly equal: readonly (keyof RowContent)[]; readonly number: string }
>;

export type RowIndex = keyof typeof rowLines;
const rowIndexes = Object.keys(rowLines) as readonly RowIndex[];

type RowNumber = (typeof rowLines)[RowIndex]['number'];
/** Not every row has an actor and a trace. */
type OptionalNumber = 'actor_number' | 'trace_number';
type RowNumbers = Readonly<Record<Exclude<RowNumber, OptionalNumber>, number>> &
  Readonly<Partial<Record<OptionalNumber, number | undefined>>>;

/** A row of the audit log of a tenant. Its time is never before that of the row before it. */
export type LogRow = RowContent &
  RowNumbers & {
    readonly created_at: string;
    /** The hashes that it completes in the tree of all rows, as text: first its leaf. */
    readonly evidence: string;
  };

/** What a row shows. */
export type ShownRow = Omit<RowContent, 'position'> & Pick<LogRow, 'created_at'>;

/** The eight fields of the specification, and ours. Undefined fields are omitted from the JSON. */
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
  source: row.source,
  actor_name: row.actor_name,
  occurred_at: row.occurred_at,
});

/** The first MAX_TYPES entity types that occurred besides `knownEntityTypes`. */
interface EntityTypes {
  readonly values: readonly string[];
}

/** The tree of all rows. */
interface StoredFrontier {
  readonly size: number;
  readonly hashes: string;
}

export const ROWS = 'log_rows';
const FRONTIER = 'log_frontier';
const TYPES = 'log_entity_types';
/** The key of what a tenant has only one of. */
const ONLY = 'tenant';
const isKnown: ReadonlySet<string> = new Set(knownEntityTypes);
/** Entity types listed besides `knownEntityTypes`. */
export const MAX_TYPES = 1_000;
/** The longest that can be queried. */
const MAX_TRACE_ID_LENGTH = 128;

/** The characters of a hash as text. Hashes are stored one after the other. */
const HASH_LENGTH = 43;

const textOf = (hashes: readonly Hash[]): string => hashes.map((hash) => hash.toString('base64url')).join('');

export const hashesIn = (text: string): readonly Hash[] =>
  Array.from({ length: text.length / HASH_LENGTH }, (_, i) =>
    Buffer.from(text.slice(i * HASH_LENGTH, (i + 1) * HASH_LENGTH), 'base64url'),
  );

const EMPTY: StoredFrontier = { size: 0, hashes: '' };

/** The frontier after a row with this number, and the row's evidence. */
const grown = (now: StoredFrontier = EMPTY, number: number, leaf: Hash) => {
  const { size, hashes } = now;
  if (size !== number - 1)
    throw new Error(`The evidence has ${size} rows and the log ${number - 1}: rebuild the read models.`);
  // Most hashes stay as they are: only those are read that the row joins, one for each 1 at the end of the size.
  const joined = /1*$/.exec(size.toString(2))?.[0].length ?? 0;
  const kept = hashes.slice(0, hashes.length - joined * HASH_LENGTH);
  const { frontier, completed } = appended(hashesIn(hashes.slice(kept.length)), size, leaf);
  const after: StoredFrontier = { size: number, hashes: kept + textOf(frontier) };
  return { evidence: textOf(completed), frontier: after as unknown as Document };
};

const withType = (now: Document | undefined, entityType: string): Document | undefined => {
  const { values } = (now as EntityTypes | undefined) ?? { values: [] };
  return values.length < MAX_TYPES ? { values: [...values, entityType] } : now;
};

const contentOf = ({ entityType: entity_type, entityId: entity_id, operation, message }: AuditLine) => {
  return { entity_type, entity_id, operation, message };
};

/** The lines that a row belongs to. */
const linesOf = (content: RowContent): readonly (LineReference & { readonly index: RowIndex })[] => {
  const lines = [];
  for (const index of rowIndexes) {
    const equal = [];
    for (const field of rowLines[index].equal) equal.push(content[field]);
    if (equal.every((value) => value !== undefined)) lines.push({ collection: ROWS, index, equal });
  }
  return lines;
};

/** Adds a row at the end of its lines. A second copy of an event adds none. */
const rowAdded = (content: RowContent, recordedAt: string, leaf: Leaf): Change => {
  const lines = linesOf(content);
  const isListed = isKnown.has(content.entity_type);
  const touches: Reference[] = [
    { collection: ROWS, key: content.id, isNew: true },
    { collection: FRONTIER, key: ONLY },
  ];
  if (!isListed) touches.push({ collection: TYPES, key: ONLY });
  const next: Change['apply'] = ([row, now, types], ends) => {
    if (row !== undefined) return [row, now, types];
    const endOf = (wanted: RowIndex) => ends[lines.findIndex(({ index }) => index === wanted)];
    const numberIn = (index: RowIndex): number => (endOf(index)?.number ?? 0) + 1;
    const number = numberIn('by_number');
    const { evidence, frontier } = grown(now as StoredFrontier | undefined, number, leaf());
    // The spread comes last: so many members after a spread take thirty times as long.
    const newRow: LogRow = {
      number,
      type_number: numberIn('by_type'),
      entity_number: numberIn('by_entity'),
      typed_id_number: numberIn('by_typed_entity'),
      actor_number: content.actor_id === undefined ? undefined : numberIn('by_actor'),
      operation_number: numberIn('by_operation'),
      trace_number: content.trace_id === undefined ? undefined : numberIn('by_trace'),
      source_number: numberIn('by_source'),
      created_at: later(recordedAt, String(endOf('by_number')?.value ?? '')),
      evidence,
      ...content,
    };
    const isNewType = !isListed && endOf('by_type')?.number === 0;
    const after = isNewType ? withType(types, content.entity_type) : types;
    return [newRow as unknown as Document, frontier, after];
  };
  return changeTogether(touches, next, lines);
};

/** What the row of an event says, apart from its time and its numbers. */
export const rowContentOf = (event: Recorded): RowContent => {
  const { id, position, type, actor, traceId } = event;
  const { occurredAt } = event.data as Partial<EntityFactData>;
  return {
    id,
    position,
    ...contentOf(auditLine(event)),
    actor_id: actor?.id,
    actor_type: actor?.type,
    actor_name: actor?.name?.slice(0, MAX_NAME_LENGTH).toWellFormed(),
    trace_id: traceId === undefined || traceId.length > MAX_TRACE_ID_LENGTH ? undefined : traceId,
    source: sourceOf(type, streamKindOf(type)),
    occurred_at: occurredAt === undefined ? undefined : canonicalTime(occurredAt),
  };
};

const logged = (event: Recorded, leaf: Leaf) => [rowAdded(rowContentOf(event), event.recordedAt, leaf)];

const byIndex = <T>(of: (index: RowIndex) => T): Readonly<Record<string, T>> =>
  Object.fromEntries(rowIndexes.map((index) => [index, of(index)]));

export const logs: Projector = {
  name: 'logs',
  version: 6,
  collections: [
    {
      name: ROWS,
      indexes: byIndex((index) => [...rowLines[index].equal, rowLines[index].number]),
      // The rows of a tenant are in the order of time; all others are in the order of these.
      numbered: byIndex((index) => (index === 'by_number' ? 'created_at' : 'number')),
    },
    { name: FRONTIER, indexes: {}, isCarried: true },
    { name: TYPES, indexes: {} },
    ...keyCollections,
  ],
  onSetAside: ({ id, position, recordedAt, type, kind, leaf }) => {
    const content = { id, position, ...contentOf(setAsideLine(id)), source: sourceOf(type, kind) };
    return [rowAdded(content, recordedAt, leaf)];
  },
  on: {
    ...Object.fromEntries(Object.keys(eventSchemas).map((type) => [type, logged])),
    KeyUsed: (event, leaf) => [keyUsed(event), ...logged(event, leaf)],
  },
};

export const findLog = async (reader: Pick<Reader, 'get'>, tenantId: string, eventId: string) =>
  (await reader.get(tenantId, ROWS, eventId)) as unknown as LogRow | undefined;

/** The row of an event as a document. */
export const logKey = (tenantId: string, eventId: string) => ({ tenantId, collection: ROWS, key: eventId });

export const findFrontier = async (reader: Pick<Reader, 'get'>, tenantId: string) => {
  const { size, hashes } =
    ((await carriedIn(reader, tenantId, FRONTIER)) as StoredFrontier | undefined) ?? EMPTY;
  return { size, frontier: hashesIn(hashes) };
};

export interface EntityType {
  readonly display_name: string;
  readonly value: string;
}

/** `knownEntityTypes`, and the first MAX_TYPES others that occurred in the tenant's log, by display name. */
export const listEntityTypes = async (reader: Reader, tenantId: string): Promise<readonly EntityType[]> => {
  const found = (await reader.get(tenantId, TYPES, ONLY)) as EntityTypes | undefined;
  return [...knownEntityTypes, ...(found?.values ?? [])]
    .map((value) => ({ display_name: displayName(value), value }))
    .toSorted((a, b) => (a.display_name < b.display_name ? -1 : 1));
};
