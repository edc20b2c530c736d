import { threadMs } from '../clock';
import type { LoggedEvent, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { codeOf } from '../fault';
import { findEvents, upToLimit, wantedBy, type EventFilter, type Reached } from './event-filter';
import { trailerBuilder } from './export';
import type { Follower, LiveTail } from './live-tail';

/** Why the server ends a stream early. It can be resumed from the position given at its end. */
export type EndReason =
  | 'key_refused'
  | 'permission_missing'
  | 'log_unavailable'
  | 'read_models_unavailable'
  | 'log_set_back'
  | 'reader_stalled'
  | 'shutting_down';

/** The wire format of a stream. */
export interface StreamForm {
  /** `cursor` is the position of the event as the caller sees it. */
  event(cursor: string, json: string): string;
  heartbeat(): string;
  trailer(json: string): string;
  end(json: string): string;
}

export interface StreamRequest {
  readonly tenantId: string;
  readonly filter: EventFilter;
  readonly after: Position | undefined;
  readonly limit: number;
  readonly follow: boolean;
}

export interface StreamParts {
  readonly ledgerLog: LedgerLog;
  readonly tail: LiveTail;
  readonly form: StreamForm;
  readonly cursorOf: (position: Position) => string;
  /** The JSON of an event as its tenant sees it. */
  readonly jsonOf: (event: LoggedEvent, cursor: string) => string;
  /** Why the caller may no longer read. Undefined: it may. */
  readonly mayRead: () => Promise<EndReason | undefined>;
  /** The caller has disconnected. */
  readonly gone: AbortSignal;
  /** The process is stopping. */
  readonly stopping: AbortSignal;
  /** The caller has stopped reading. */
  readonly stalled: AbortSignal;
}

/** Short enough to end the streams of a revoked key within a second. */
const CHECK_MS = 500;
const HEARTBEAT_MS = 15_000;
/** The approximate size of a piece of text, unless an event is larger. Bounds what is buffered for a stalled reader. */
const MAX_CHARACTERS = 65_536;

const UNAVAILABLE: ReadonlySet<string> = new Set([
  'log_unavailable',
  'read_models_unavailable',
  'log_set_back',
]);

const isUnavailable = (error: unknown): error is { readonly code: EndReason } =>
  UNAVAILABLE.has(codeOf(error) ?? '');

/** Why the stream must end now. Calls `mayRead` at most twice a second. */
const endReason = ({ mayRead, stopping, stalled }: StreamParts) => {
  let checkedAt = threadMs();
  return async (): Promise<EndReason | undefined> => {
    if (stalled.aborted) return 'reader_stalled';
    if (stopping.aborted) return 'shutting_down';
    if (threadMs() - checkedAt < CHECK_MS) return undefined;
    checkedAt = threadMs();
    return mayRead();
  };
};

/** Formats what is written to a stream, and keeps the totals for its trailer. */
const transcript = ({ form, cursorOf, jsonOf }: StreamParts) => {
  const trail = trailerBuilder();
  return {
    write: (event: LoggedEvent): string => {
      const cursor = cursorOf(event.position);
      const json = jsonOf(event, cursor);
      trail.add(`${json}\n`, [cursor]);
      return form.event(cursor, json);
    },
    trailer: (): string => form.trailer(JSON.stringify({ trailer: trail.summary() })),
    end: (reason: string, position: Position | undefined): string => {
      const resume = position === undefined ? {} : { position: cursorOf(position) };
      return form.end(JSON.stringify({ end: { reason, ...resume } }));
    },
  };
};

/** Events that cannot be decoded are streamed as they are, without a report. */
const ignore = (): void => undefined;

interface Step {
  readonly events: readonly LoggedEvent[];
  readonly position: Position | undefined;
}

/** New events after `reached`, read once for all followers of the tenant. */
async function* newEvents(
  follower: Follower,
  isWanted: (event: LoggedEvent) => boolean,
  reached: Reached,
): AsyncGenerator<Step & { readonly position: Position }> {
  for (;;) {
    const batch = await follower.read(reached.position);
    const last = batch.at(-1);
    if (last === undefined) return;
    yield { events: batch.filter(isWanted), position: last.position };
  }
}

/** The existing events, up to the limit; then, if it follows, new ones as they come. */
async function* matching(
  { tenantId, filter, after, limit, follow }: StreamRequest,
  { ledgerLog, tail, gone, stopping }: StreamParts,
): AsyncGenerator<Step> {
  const follower = follow ? await tail.follow(tenantId) : undefined;
  try {
    const upTo = follow ? undefined : (await ledgerLog.log.head())?.position;
    const reached: Reached = { position: after, remaining: limit };
    const ending = AbortSignal.any([gone, stopping]);
    const isWanted = wantedBy(filter, ledgerLog, ignore);
    for (let seen = -1; !gone.aborted;) {
      const changes = follower?.changes() ?? 0;
      // New events always change the number, so there is nothing to read if it is the same.
      if (changes !== seen) {
        const range = { after: reached.position, upTo, signal: gone };
        const steps =
          follower === undefined || seen < 0
            ? findEvents(ledgerLog, filter, range, ignore)
            : newEvents(follower, isWanted, reached);
        seen = changes;
        yield* upToLimit(steps, reached);
      }
      if (follower === undefined || reached.remaining === 0) return;
      await follower.wait(seen, CHECK_MS, ending);
      yield { events: [], position: reached.position };
    }
  } finally {
    follower?.stop();
  }
}

/** Texts of whole events, each with the position that it reaches. Lazy: events are formatted as the reader takes them. */
async function* textsOf(
  steps: AsyncIterable<Step>,
  write: (event: LoggedEvent) => string,
): AsyncGenerator<{ readonly text: string; readonly position: Position | undefined }> {
  for await (const { events, position } of steps) {
    let text = '';
    for (const event of events) {
      text += write(event);
      if (text.length < MAX_CHARACTERS) continue;
      yield { text, position: event.position };
      text = '';
    }
    yield { text, position };
  }
}

/**
 * The events of one tenant as text, with backpressure: the log is read only as fast as the reader takes them. Ends with a
 * trailer (number, first and last position, SHA-256 of the events' JSON, each with a line feed), or early with a reason.
 */
export async function* eventStream(request: StreamRequest, parts: StreamParts): AsyncGenerator<string> {
  const { write, trailer, end } = transcript(parts);
  const check = endReason(parts);
  let { after: position } = request;
  let wroteAt = threadMs();
  try {
    for await (const { text, position: reached } of textsOf(matching(request, parts), write)) {
      const isSilent = threadMs() - wroteAt >= HEARTBEAT_MS;
      if (text !== '' || isSilent) {
        wroteAt = threadMs();
        yield text === '' ? parts.form.heartbeat() : text;
      }
      position = reached;
      const reason = await check();
      if (reason !== undefined) return yield end(reason, position);
    }
    yield trailer();
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    yield end(error.code, position);
  }
}
