import type { RecordedEvent } from '@eventstore/db-client';
import { isJsonObject, isRecordedTime, type LoggedEvent, type NewEvent, type Position } from '../event-log';

/** The digits of a 64-bit number. Positions are padded, so that they sort as text. */
const DIGITS = 20;

export const positionOf = (commit: bigint): Position => String(commit).padStart(DIGITS, '0');

/** Both are equal for events written outside a transaction, as all of ours are. Too large for a JavaScript number. */
export const commitPosition = (position: Position): { readonly commit: bigint; readonly prepare: bigint } => {
  const commit = BigInt(position);
  return { commit, prepare: commit };
};

/** The metadata member of a copied event with the time at which the original log recorded it. */
const RECORDED_AT = 'recordedAt';

/** As sent to the server. */
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

const recordedTimeIn = (metadata: unknown): string | undefined => {
  const time = isJsonObject(metadata) ? metadata[RECORDED_AT] : undefined;
  return isRecordedTime(time) ? (time as string) : undefined;
};

const withoutRecordedAt = (metadata: unknown): unknown => {
  const { [RECORDED_AT]: _, ...rest } = metadata as Record<string, unknown>;
  return rest;
};

/** The package returns invalid JSON as a string, and data not declared as JSON as a byte array. */
const plain = (value: unknown): unknown => {
  if (typeof value === 'string') return Buffer.from(value);
  return value instanceof Uint8Array ? Buffer.from(value) : value;
};

/** Deeper levels are not counted, since other programs may nest without limit. */
const MAX_DEPTH = 32;

/** The approximate size of a value. Cheaper than serializing it again. */
const approximateSize = (value: unknown, depth = 0): number => {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return 4;
  if (ArrayBuffer.isView(value)) return value.byteLength;
  let sum = 2;
  for (const [name, member] of Object.entries(value))
    sum += name.length + 4 + approximateSize(member, depth + 1);
  return sum;
};

export const eventOf = (record: RecordedEvent): LoggedEvent => {
  const given = recordedTimeIn(record.metadata);
  const metadata = given === undefined ? record.metadata : withoutRecordedAt(record.metadata);
  return {
    id: record.id,
    type: record.type,
    data: plain(record.data),
    metadata: plain(metadata),
    stream: record.streamId,
    revision: Number(record.revision),
    position: positionOf(record.position?.commit ?? 0n),
    recordedAt: given ?? record.created.toISOString(),
    bytes: approximateSize(record.data) + approximateSize(record.metadata),
  };
};
