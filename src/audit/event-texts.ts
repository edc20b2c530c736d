import type { LoggedEvent, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { tenantEvent } from './event-views';
import { findEvents, upToLimit, wantedBy, type EventFilter, type Reached } from './event-filter';
import { trailerBuilder } from './export';
import type { Follower, LiveTail } from './live-tail';
import { tenantPosition, type Place } from './event-places';

/** The wire format of a stream of events. */
export interface StreamForm {
  event(position: string, json: string): string;
  heartbeat(): string;
  trailer(json: string): string;
  end(json: string): string;
}

export const streamForms = {
  ndjson: {
    event: (_, json) => `${json}\n`,
    heartbeat: () => '\n',
    trailer: (json) => `${json}\n`,
    end: (json) => `${json}\n`,
  },
  serverSentEvents: {
    event: (position, json) => `id: ${position}\ndata: ${json}\n\n`,
    heartbeat: () => ': still here\n\n',
    trailer: (json) => `event: trailer\ndata: ${json}\n\n`,
    end: (json) => `event: end\ndata: ${json}\n\n`,
  },
} satisfies Record<string, StreamForm>;

export type StreamFormName = keyof typeof streamForms;

export interface StreamRequest {
  readonly tenantId: string;
  readonly filter: EventFilter;
  readonly after: Place | undefined;
  /** Undefined: all. */
  readonly limit: number | undefined;
  readonly follow: boolean;
  readonly form: StreamFormName;
}

interface TextDependencies {
  readonly ledgerLog: LedgerLog;
  readonly tail: LiveTail;
  /** Waits for the next turn of the tenant, before each slice of work. */
  readonly turn: () => Promise<void>;
  /** Nobody reads any more. */
  readonly gone: AbortSignal;
}

/** A piece of a stream: whole events, or none. */
export interface EventText {
  readonly text: string;
  readonly events: number;
  /** The stream can be resumed after this position. Undefined: from its start. */
  readonly position: string | undefined;
  /** It is the trailer: the stream is complete. */
  readonly isLast: boolean;
}

/** The approximate size of a piece of text, unless an event is larger. Bounds what is buffered for a stalled reader. */
const MAX_CHARACTERS = 65_536;

/** Formats what is written to a stream, and keeps the totals for its trailer. */
const transcript = ({ filter, after, limit, form: formName }: StreamRequest, ledgerLog: LedgerLog) => {
  const { streams } = ledgerLog;
  const form = streamForms[formName];
  const positionOf = (place: Place | undefined): string | undefined =>
    place === undefined ? undefined : tenantPosition(place, streams);
  const trail = trailerBuilder({ view: 'tenant', filter, after: positionOf(after), limit });
  return {
    write: (event: LoggedEvent): string => {
      const json = JSON.stringify(tenantEvent(event, streams));
      trail.add([json]);
      return form.event(tenantPosition(event, streams), json);
    },
    trailer: async (upTo: Position | undefined): Promise<string> =>
      form.trailer(await trail.trailerLine(ledgerLog, upTo)),
    positionOf,
  };
};

/** Events that cannot be decoded are streamed as they are, without a report. */
const ignore = (): void => undefined;

interface Step {
  readonly events: readonly LoggedEvent[];
  readonly last: Place | undefined;
}

/** New events after `reached`, read once for all followers of the tenant. */
async function* newEvents(
  follower: Follower,
  isWanted: (event: LoggedEvent) => boolean,
  reached: Reached,
  turn: () => Promise<void>,
): AsyncGenerator<Step & { readonly last: LoggedEvent }> {
  for (;;) {
    await turn();
    const batch = await follower.read(reached.place?.position);
    const last = batch.at(-1);
    if (last === undefined) return;
    yield { events: batch.filter(isWanted), last };
  }
}

/** The existing events, up to the limit; then, if it follows, new ones as they come. */
async function* matching(
  { tenantId, filter, follow }: StreamRequest,
  { ledgerLog, tail, turn, gone }: TextDependencies,
  reached: Reached,
  upTo: Position | undefined,
): AsyncGenerator<Step> {
  const follower = follow ? await tail.follow(tenantId) : undefined;
  try {
    const isWanted = wantedBy(filter, ledgerLog.streams, ignore);
    for (let seen = -1; !gone.aborted;) {
      const changes = follower?.changes() ?? 0;
      // New events always change the number, so there is nothing to read if it is the same.
      if (changes !== seen) {
        const range = { after: reached.place?.position, upTo, signal: gone };
        const steps =
          follower === undefined || seen < 0
            ? findEvents(ledgerLog, filter, range, ignore)
            : newEvents(follower, isWanted, reached, turn);
        seen = changes;
        yield* upToLimit(steps, reached);
      }
      if (follower === undefined || reached.remaining === 0) return;
      await follower.wait(seen, gone);
    }
  } finally {
    follower?.stop();
  }
}

interface Text {
  readonly text: string;
  readonly events: number;
  readonly place: Place | undefined;
}

/** Texts of whole events, each with the place that it reaches. Lazy: events are formatted as the reader takes them. */
async function* textsOf(
  steps: AsyncIterable<Step>,
  write: (event: LoggedEvent) => string,
  turn: () => Promise<void>,
): AsyncGenerator<Text> {
  for await (const { events, last } of steps) {
    let [text, count] = ['', 0];
    for (const event of events) {
      text += write(event);
      count += 1;
      if (text.length < MAX_CHARACTERS) continue;
      yield { text, events: count, place: event };
      [text, count] = ['', 0];
      await turn();
    }
    yield { text, events: count, place: last };
  }
}

/**
 * The events of one tenant as text, and a trailer at the end (the SHA-256 is that of the events' JSON, each with a line
 * feed). The log is read only as fast as the texts are taken.
 */
export async function* eventTexts(
  request: StreamRequest,
  dependencies: TextDependencies,
): AsyncGenerator<EventText> {
  const { write, trailer, positionOf } = transcript(request, dependencies.ledgerLog);
  const { after, limit = Infinity, follow } = request;
  const reached: Reached = { place: after, remaining: limit };
  const head = follow ? undefined : (await dependencies.ledgerLog.log.head())?.position;
  const steps = matching(request, dependencies, reached, head);
  for await (const { text, events, place } of textsOf(steps, write, dependencies.turn))
    yield { text, events, position: positionOf(place), isLast: false };
  const text = await trailer(reached.remaining === 0 ? reached.place?.position : head);
  yield { text, events: 0, position: positionOf(reached.place), isLast: true };
}
