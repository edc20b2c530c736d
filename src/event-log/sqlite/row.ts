import { randomInt } from 'node:crypto';
import { textOfBytes } from '../../sqlite/text';
import type { LoggedEvent, Position } from '../event-log';

/**
 * The columns of an event, in this order: rows come as lists, which is half the cost of objects with names. A log that was
 * never opened for writing by a program that knows `stored_at` has no such column.
 */
export const columnsOf = (storedAt: StoredAt): string =>
  `position, stream, revision, id, type, data, metadata, recorded_at, ${storedAt}`;

export type StoredAt = 'stored_at' | 'NULL';

export type Row = readonly [
  position: number,
  stream: string,
  revision: number,
  id: string,
  type: string,
  data: string,
  metadata: string,
  recordedAt: number,
  storedAt: number | null,
];

/** Stands between the texts of a row: nobody who has put something into the file can have known it. */
const FENCE = randomInt(2 ** 31);

/**
 * Many rows as the text of one JSON list, since most of the cost of a row is its way out of SQLite, and the text of a
 * short JSON costs nearly as much as that of a long one. What is no JSON spoils the list; what would end its own row and
 * begin another cannot write the fences.
 */
const partsWith = (storedAt: StoredAt) => [
  'position',
  'json_quote(stream)',
  'json_quote(revision)',
  'json_quote(id)',
  'json_quote(type)',
  'data',
  FENCE,
  'metadata',
  FENCE,
  'json_quote(recorded_at)',
  `json_quote(${storedAt})`,
  'octet_length(data) + octet_length(metadata)',
];
const PARTS = partsWith('NULL').length;

export const pageText = (storedAt: StoredAt): string =>
  `concat('[', group_concat(concat('[', ${partsWith(storedAt).join(`, ',', `)}, ']')), ']')`;

/** Padded, so that the order of the text is the order of the log. */
export const positionOf = (rowId: number): Position => String(rowId).padStart(16, '0');

export const rowIdOf = (position: Position | undefined): number =>
  position === undefined ? 0 : Number(position);

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return Buffer.from(text);
  }
};

/** Events come in bursts: many neighbours share their millisecond. */
const isoTimes = () => {
  let last = Number.NaN;
  let text = '';
  return (time: number): string => {
    if (time === last) return text;
    text = new Date(Number.isSafeInteger(time) ? time : 0).toISOString();
    last = time;
    return text;
  };
};
const isoOf = isoTimes();

/** Only one that is earlier counts. */
const storedBefore = (recordedAt: number, storedAt: number | null): { readonly storedAt?: string } =>
  storedAt !== null && Number.isSafeInteger(storedAt) && storedAt < recordedAt
    ? { storedAt: new Date(storedAt).toISOString() }
    : {};

export const eventOf = ([
  position,
  stream,
  revision,
  id,
  type,
  data,
  metadata,
  recordedAt,
  storedAt,
]: Row): LoggedEvent & { readonly bytes: number } => ({
  id,
  type,
  data: parsed(data),
  metadata: parsed(metadata),
  stream,
  revision,
  position: positionOf(position),
  bytes: Buffer.byteLength(data) + Buffer.byteLength(metadata),
  recordedAt: isoOf(recordedAt),
  ...storedBefore(recordedAt, storedAt),
});

type Parts = readonly [
  position: number,
  stream: string,
  revision: number,
  id: string,
  type: string,
  data: unknown,
  fence: number,
  metadata: unknown,
  fence: number,
  recordedAt: number,
  storedAt: number | null,
  bytes: number,
];

/** What the driver might give in another way, or not at all, is left to it. */
const isRow = (parts: Parts, after: number): boolean =>
  parts.length === PARTS &&
  parts[0] > after &&
  Number.isSafeInteger(parts[2]) &&
  parts[6] === FENCE &&
  parts[8] === FENCE &&
  Number.isSafeInteger(parts[9]) &&
  (parts[10] === null || Number.isSafeInteger(parts[10]));

/** There are few types. */
const MOST_TYPES = 1_000;
const types = new Map<string, string>();

/** One and the same text for all events of a type: it is looked up again and again. */
const sameType = (type: string): string => {
  const known = types.get(type);
  if (known !== undefined) return known;
  if (types.size >= MOST_TYPES) types.clear();
  types.set(type, type);
  return type;
};

/** Undefined: there may be a text in it that the driver would cut at a NUL, or it is no list. */
const partsOf = (page: string): readonly Parts[] | undefined => {
  if (page.includes('\\u0000')) return undefined;
  try {
    return JSON.parse(page) as readonly Parts[];
  } catch {
    return undefined;
  }
};

/** The events of such a text. Undefined: it does not come apart into so many rows in the order of the log. */
export const pageOf = (
  bytes: Uint8Array,
  rows: number,
  after: number,
): readonly (LoggedEvent & { readonly bytes: number })[] | undefined => {
  const found = partsOf(textOfBytes(bytes));
  if (found?.length !== rows) return undefined;
  const page: (LoggedEvent & { readonly bytes: number })[] = [];
  let [last, lastStream] = [after, ''];
  for (const parts of found) {
    if (!isRow(parts, last)) return undefined;
    const [position, stream, revision, id, type, data, , metadata, , recordedAt, storedAt, size] = parts;
    last = position;
    // Neighbours often share their stream.
    if (stream !== lastStream) lastStream = stream;
    page.push({
      id,
      type: sameType(type),
      data,
      metadata,
      stream: lastStream,
      revision,
      position: positionOf(position),
      bytes: size,
      recordedAt: isoOf(recordedAt),
      ...storedBefore(recordedAt, storedAt),
    });
  }
  return page;
};
