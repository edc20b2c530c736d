import type { EventLog } from './event-log';
import type { Streams } from './streams';

/** A log and the names of our streams in it. */
export interface LedgerLog {
  readonly log: EventLog;
  readonly streams: Streams;
}
