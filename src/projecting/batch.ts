import { decode, type Decoded, type Owner } from '../event-log/codec';
import type { LoggedEvent } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';

/** An event of the log, decoded at first use, once for all runs. */
export interface BatchEvent {
  readonly logged: LoggedEvent;
  readonly owner: Owner;
  readonly decoded: Decoded;
}

export type Batch = readonly BatchEvent[];

/** A class for speed: object literals would each carry a getter of their own. */
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
  /** Parses each stream name only once. */
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
