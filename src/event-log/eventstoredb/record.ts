import type { RecordedEvent } from '@eventstore/db-client';
import type { LoggedEvent, NewEvent, Position } from '../event-log';

/** The most digits that 64 bits need. Padded, so that the order of the text is the order of the log. */
const DIGITS = 20;

export const positionOf = (commit: bigint): Position => String(commit).padStart(DIGITS, '0');

/** For what was written in one go, as everything of ours, both numbers are the same. Never through a JavaScript number. */
export const pointOf = (position: Position): { readonly commit: bigint; readonly prepare: bigint } => {
  const commit = BigInt(position);
  return { commit, prepare: commit };
};

/** Where an event that was copied from another log says when that one recorded it. */
const RECORDED_AT = 'recordedAt';

/** As it travels. */
export interface Serialised {
  readonly id: string;
  readonly type: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
}

const bytesOf = (value: unknown): Uint8Array => Uint8Array.from(Buffer.from(JSON.stringify(value)));

export const serialised = ({ id, type, data, metadata, recordedAt }: NewEvent): Serialised => {
  const all = recordedAt === undefined ? metadata : { ...metadata, [RECORDED_AT]: recordedAt };
  return { id: id.toLowerCase(), type, data: bytesOf(data), metadata: bytesOf(all) };
};

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);

const momentIn = (metadata: unknown): string | undefined => {
  const text = isMap(metadata) ? metadata[RECORDED_AT] : undefined;
  if (typeof text !== 'string' || Number.isNaN(Date.parse(text))) return undefined;
  return new Date(text).toISOString() === text ? text : undefined;
};

const without = (metadata: unknown): unknown => {
  const { [RECORDED_AT]: _, ...rest } = metadata as Record<string, unknown>;
  return rest;
};

/** What is called JSON and is none comes from the package as text; other bytes as an array of them. */
const plain = (value: unknown): unknown => {
  if (typeof value === 'string') return Buffer.from(value);
  return value instanceof Uint8Array ? Buffer.from(value) : value;
};

/** What lies deeper is not weighed: others may write what they like, as deep as they like. */
const DEEPEST = 32;

/** Roughly what a value takes: cheaper than to write it down again. */
const weightOf = (value: unknown, depth = 0): number => {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return 4;
  if (ArrayBuffer.isView(value)) return value.byteLength;
  let sum = 2;
  for (const [name, inside] of Object.entries(value)) sum += name.length + 4 + weightOf(inside, depth + 1);
  return sum;
};

export const eventOf = (record: RecordedEvent): LoggedEvent => {
  const given = momentIn(record.metadata);
  const metadata = given === undefined ? record.metadata : without(record.metadata);
  const storedAt = record.created.toISOString();
  const recordedAt = given ?? storedAt;
  return {
    id: record.id,
    type: record.type,
    data: plain(record.data),
    metadata: plain(metadata),
    stream: record.streamId,
    revision: Number(record.revision),
    position: positionOf(record.position?.commit ?? 0n),
    recordedAt,
    ...(storedAt < recordedAt ? { storedAt } : {}),
    bytes: weightOf(record.data) + weightOf(record.metadata),
  };
};
