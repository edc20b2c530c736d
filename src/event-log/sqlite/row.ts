import type { LoggedEvent, Position } from '../event-log';

export interface Row {
  readonly position: number;
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
  readonly recorded_at: number;
}

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

export const eventOf = (row: Row): LoggedEvent => ({
  id: row.id,
  type: row.type,
  data: parsed(row.data),
  metadata: parsed(row.metadata),
  stream: row.stream,
  revision: row.revision,
  position: positionOf(row.position),
  bytes: row.data.length + row.metadata.length,
  recordedAt: new Date(Number.isSafeInteger(row.recorded_at) ? row.recorded_at : 0).toISOString(),
});
