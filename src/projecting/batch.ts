import { decode, type Decoded, type Owner } from '../event-log/codec';
import type { LoggedEvent } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';

/** An event of the log, decoded at first use and once for every run that takes it. */
export interface BatchEvent {
  readonly logged: LoggedEvent;
  readonly owner: Owner;
  readonly decoded: Decoded;
}

export type Batch = readonly BatchEvent[];

/** A class, because there are so many of them: objects that each have a getter of their own cost far more. */
class LazilyDecoded implements BatchEvent {
  #decoded: Decoded | undefined;

  constructor(
    readonly logged: LoggedEvent,
    readonly owner: Owner,
    private readonly streams: Streams,
  ) {}

  get decoded(): Decoded {
    return (this.#decoded ??= decode(this.logged, this.streams, this.owner));
  }
}

export const batchOf = (events: readonly LoggedEvent[], streams: Streams): Batch => {
  /** Events of one stream have one owner: its id is hashed and compared once. */
  const owners = new Map<string, Owner>();
  const ownerOf = (stream: string): Owner => {
    const known = owners.get(stream);
    if (known !== undefined) return known;
    const owner = streams.parse(stream);
    owners.set(stream, owner);
    return owner;
  };
  return events.map((logged) => new LazilyDecoded(logged, ownerOf(logged.stream), streams));
};
