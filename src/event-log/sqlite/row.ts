import type { LoggedEvent, Position } from '../event-log';

/** The columns of an event, in this order: rows come as lists, which is half the cost of objects with names. */
export const COLUMNS = 'position, stream, revision, id, type, data, metadata, recorded_at';

export type Row = readonly [
  position: number,
  stream: string,
  revision: number,
  id: string,
  type: string,
  data: string,
  metadata: string,
  recordedAt: number,
];

/** Cannot stand in JSON, nor in the name of a stream or type of ours. */
const BETWEEN = '\u001f';

/** Many rows as one text, all columns one after the other: most of the cost of a row is its way out of SQLite. */
export const PAGE_TEXT = `group_concat(${COLUMNS.split(', ').join(' || char(31) || ')}, char(31))`;

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
    last = time;
    text = new Date(Number.isSafeInteger(time) ? time : 0).toISOString();
    return text;
  };
};
const isoOf = isoTimes();

export const eventOf = ([
  position,
  stream,
  revision,
  id,
  type,
  data,
  metadata,
  recordedAt,
]: Row): LoggedEvent & { readonly bytes: number } => ({
  id,
  type,
  data: parsed(data),
  metadata: parsed(metadata),
  stream,
  revision,
  position: positionOf(position),
  bytes: data.length + metadata.length,
  recordedAt: isoOf(recordedAt),
});

const WIDTH = COLUMNS.split(', ').length;

/** Part of a long text keeps all of it in memory: what others may keep is made a text of its own. */
const own = <T extends string | readonly string[]>(texts: T): T => JSON.parse(JSON.stringify(texts)) as T;

/** There are few types. */
const MOST_TYPES = 1_000;
const types = new Map<string, string>();
const ownType = (type: string): string => {
  const known = types.get(type);
  if (known !== undefined) return known;
  if (types.size >= MOST_TYPES) types.clear();
  const made = own(type);
  types.set(made, made);
  return made;
};

const ownIds = (parts: readonly string[]): readonly string[] => {
  const ids: string[] = [];
  for (let at = 3; at < parts.length; at += WIDTH) ids.push(parts[at] as string);
  return own(ids);
};

type Texts = readonly [string, string, string, string, string, string, string, string];

/** The events of such a text. Undefined: it does not come apart into so many rows in the order of the log. */
export const pageOf = (
  text: string,
  rows: number,
  after: number,
): readonly (LoggedEvent & { readonly bytes: number })[] | undefined => {
  const parts = text.split(BETWEEN);
  if (parts.length !== rows * WIDTH) return undefined;
  const ids = ownIds(parts);
  const page: ReturnType<typeof eventOf>[] = [];
  let [last, lastStream] = [after, ''];
  for (const [row, id] of ids.entries()) {
    const texts = parts.slice(row * WIDTH, (row + 1) * WIDTH) as unknown as Texts;
    const [position, stream, revision, , type, data, metadata, recordedAt] = texts;
    const here = Number(position);
    // Also true of what is no number.
    if (!(here > last)) return undefined;
    last = here;
    // Neighbours often share their stream.
    if (stream !== lastStream) lastStream = own(stream);
    const columns: Row = [
      here,
      lastStream,
      Number(revision),
      id,
      ownType(type),
      data,
      metadata,
      Number(recordedAt),
    ];
    page.push(eventOf(columns));
  }
  return page;
};
