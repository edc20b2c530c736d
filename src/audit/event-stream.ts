import { threadMs } from '../async/clock';
import { codeOf } from '../fault';
import { TIMES } from '../times';
import type { EventFilter } from './event-filter';
import { tenantPosition, type Place } from './event-places';
import type { EventSource } from './event-source';
import { exportLines, type ExportedLines } from './export';

/** Why the server ends a stream early. It can be resumed from the position given at its end. */
export const endReasons = [
  'key_refused',
  'permission_missing',
  'log_unavailable',
  'read_models_unavailable',
  'log_set_back',
  'shutting_down',
  'internal_error',
] as const;

export type EndReason = (typeof endReasons)[number];

/** The wire format of a stream of events. */
export interface StreamForm {
  /** What comes first. */
  readonly head?: string;
  event(json: string, position: string): string;
  /** Empty: it has no signs of life. */
  heartbeat: string;
  /** The last line, which is a trailer or says why the stream ends early. Empty: there is none. */
  last(name: 'trailer' | 'end', json: string): string;
}

export const streamForms = {
  ndjson: { event: (json) => `${json}\n`, heartbeat: '\n', last: (_, json) => `${json}\n` },
  serverSentEvents: {
    event: (json, position) => `id: ${position}\ndata: ${json}\n\n`,
    heartbeat: ': still here\n\n',
    last: (name, json) => `event: ${name}\ndata: ${json}\n\n`,
  },
} satisfies Record<string, StreamForm>;

export interface StreamRequest {
  readonly tenantId: string;
  readonly filter: EventFilter;
  readonly after: Place | undefined;
  /** The maximum number of events, if there is one. */
  readonly limit: number | undefined;
  readonly follow: boolean;
  readonly form: StreamForm;
}

/** Who reads a stream. */
export interface StreamClient {
  /** Why the caller may no longer read, if so. */
  readonly mayRead: () => Promise<EndReason | undefined>;
  /** Counts the events that the caller got, at the end. */
  readonly gaveOut: (events: number) => void;
  /** Aborted when the caller has disconnected. */
  readonly gone: AbortSignal;
}

const UNAVAILABLE = /^(?:log_unavailable|read_models_unavailable|log_set_back)$/;

const isUnavailable = (error: unknown): error is { readonly code: EndReason } =>
  UNAVAILABLE.test(codeOf(error) ?? '');

/** Why a stream must end now, if so. Calls `mayRead` at most twice a second. */
export const endReason = (mayRead: StreamClient['mayRead'], stopping: AbortSignal) => {
  let checkedAt = threadMs();
  return async (): Promise<EndReason | undefined> => {
    if (stopping.aborted) return isUnavailable(stopping.reason) ? stopping.reason.code : 'shutting_down';
    if (threadMs() - checkedAt < TIMES.keyAgeMs) return undefined;
    checkedAt = threadMs();
    return mayRead();
  };
};

/** The lines of the events, read in slices. While it follows, there are some at least every 500 ms, if only none. */
async function* linesOf(
  { tenantId, filter, after, limit, follow }: StreamRequest,
  { sliced, followTenant }: EventSource,
  signal: AbortSignal,
): AsyncGenerator<ExportedLines> {
  const ledgerLog = sliced(tenantId);
  const start = after === undefined ? undefined : tenantPosition(after, ledgerLog.streams);
  const conditions = { view: 'tenant', filter, after: start, limit } as const;
  const range = { after: after?.position, signal };
  const upTo = follow ? undefined : (await ledgerLog.log.head())?.position;
  const batches = follow ? followTenant(ledgerLog, tenantId, range) : undefined;
  // Events that cannot be decoded are streamed as they are, without a report.
  const onUnreadable = (): void => undefined;
  yield* exportLines(ledgerLog, conditions, { ...range, upTo, follow }, { batches, onUnreadable });
}

/** A chunk without a character would end the flow of a stream. */
function* unlessEmpty(text: string): Generator<string, undefined> {
  if (text !== '') yield text;
}

/**
 * What a stream of events sends: the events of a tenant, signs of life, and at the end a trailer, or why it ends early.
 * The log is read only as fast as the texts are taken.
 */
export async function* eventStream(
  request: StreamRequest,
  source: EventSource,
  { mayRead, gaveOut, gone }: StreamClient,
): AsyncGenerator<string> {
  const { form, after } = request;
  const positionOf = (place: Place): string => tenantPosition(place, source.ledgerLog.streams);
  const whyEnd = endReason(mayRead, source.stopping);
  let position = after && positionOf(after);
  let given = 0;
  let wroteAt = threadMs();
  const end = (reason: EndReason): string => form.last('end', JSON.stringify({ end: { reason, position } }));
  try {
    if (form.head !== undefined) yield form.head;
    for await (const { lines, events, last, isTrailer } of linesOf(request, source, gone)) {
      if (isTrailer) return yield* unlessEmpty(form.last('trailer', lines.join()));
      let text = events.map((event, at) => form.event(lines[at] as string, positionOf(event))).join('');
      given += events.length;
      if (text === '' && threadMs() - wroteAt >= TIMES.heartbeatMs) text = form.heartbeat;
      if (text !== '') {
        wroteAt = threadMs();
        yield text;
      }
      if (last !== undefined) position = positionOf(last);
      const reason = await whyEnd();
      if (reason !== undefined) return yield end(reason);
    }
  } catch (error) {
    yield end(isUnavailable(error) ? error.code : 'internal_error');
    if (!isUnavailable(error)) throw error;
  } finally {
    if (given > 0) gaveOut(given);
  }
}
