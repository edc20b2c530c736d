import { decode, type Decoded, type Owner } from '../event-log/codec';
import type { LoggedEvent } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { isWellFormed } from '../json';

/** An event of a tenant, decoded. */
export interface BatchEvent {
  readonly logged: LoggedEvent;
  readonly owner: Exclude<Owner, undefined>;
  readonly decoded: Exclude<Decoded, { readonly status: 'foreign' }>;
  /** The position just before it, where its tenant resumes if it is parked here. */
  readonly after: string | undefined;
}

export type Batch = readonly BatchEvent[];

/** Text that not every store can hold makes an event bad in all of them. */
const decodedOf = (logged: LoggedEvent, streams: Streams, owner: BatchEvent['owner']): Decoded => {
  const decoded = decode(logged, streams, owner);
  if (decoded.status !== 'good' || (isWellFormed(logged.data) && isWellFormed(logged.metadata)))
    return decoded;
  return { status: 'bad', ...owner, reason: 'A text is not well-formed: half of a character is missing.' };
};

/** The events of tenants among those after a position. */
export const batchOf = (
  events: readonly LoggedEvent[],
  streams: Streams,
  after: string | undefined,
): Batch => {
  const batch: BatchEvent[] = [];
  let before = after;
  for (const logged of events) {
    const owner = streams.parse(logged.stream);
    const decoded = owner === undefined ? undefined : decodedOf(logged, streams, owner);
    if (owner !== undefined && decoded !== undefined && decoded.status !== 'foreign')
      batch.push({ logged, owner, decoded, after: before });
    before = logged.position;
  }
  return batch;
};
