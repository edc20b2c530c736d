import { threadMs } from '../async/clock';
import { codeOf } from '../fault';
import type { EventChunks } from './reading';
import type { StreamForm } from './event-texts';

/** Why the server ends a stream early. It can be resumed from the position given at its end. */
export const endReasons = [
  'key_refused',
  'permission_missing',
  'log_unavailable',
  'read_models_unavailable',
  'log_set_back',
  'reader_stalled',
  'shutting_down',
  'internal_error',
] as const;

export type EndReason = (typeof endReasons)[number];

export interface StreamDependencies {
  /** Read in another thread. */
  readonly chunks: EventChunks;
  readonly form: StreamForm;
  /** Where the stream begins, as the caller sees it. */
  readonly after: string | undefined;
  /** Counts the events that the caller got, at the end. */
  readonly gaveOut: (events: number) => void;
  /** Why the caller may no longer read. Undefined: it may. */
  readonly mayRead: () => Promise<EndReason | undefined>;
  /** The caller has disconnected. */
  readonly gone: AbortSignal;
  /** The process is stopping, possibly for a reason that the caller should know. */
  readonly stopping: AbortSignal;
  /** The caller has stopped reading. */
  readonly stalled: AbortSignal;
}

/** Short enough to end the streams of a revoked key within a second. */
const CHECK_MS = 500;
const HEARTBEAT_MS = 15_000;

const UNAVAILABLE: ReadonlySet<string> = new Set([
  'log_unavailable',
  'read_models_unavailable',
  'log_set_back',
]);

const isUnavailable = (error: unknown): error is { readonly code: EndReason } =>
  UNAVAILABLE.has(codeOf(error) ?? '');

/** Why a stream must end now. Calls `mayRead` at most twice a second. */
export const endReason = ({
  mayRead,
  stopping,
  stalled,
}: Pick<StreamDependencies, 'mayRead' | 'stopping' | 'stalled'>) => {
  let checkedAt = threadMs();
  return async (): Promise<EndReason | undefined> => {
    if (stalled.aborted) return 'reader_stalled';
    if (stopping.aborted) return isUnavailable(stopping.reason) ? stopping.reason.code : 'shutting_down';
    if (threadMs() - checkedAt < CHECK_MS) return undefined;
    checkedAt = threadMs();
    return mayRead();
  };
};

/** What a stream of events sends: the chunks as they come, signs of life, and why it ends early. */
export async function* eventStream({
  chunks,
  form,
  after,
  gaveOut,
  mayRead,
  gone,
  stopping,
  stalled,
}: StreamDependencies): AsyncGenerator<Uint8Array | string> {
  const check = endReason({ mayRead, stopping, stalled });
  let position = after;
  let given = 0;
  const end = (reason: EndReason): string => form.end(JSON.stringify({ end: { reason, position } }));
  let wroteAt = threadMs();
  try {
    while (!gone.aborted) {
      // A shutdown is noticed after this long, too: a signal of both would stay in `stopping` for ever on Node 20.
      const chunk = await chunks.next(CHECK_MS, gone);
      const isSilent = threadMs() - wroteAt >= HEARTBEAT_MS;
      const hasBytes = chunk !== undefined && chunk.bytes.length > 0;
      given += chunk?.events ?? 0;
      if (hasBytes || isSilent) {
        wroteAt = threadMs();
        yield hasBytes ? chunk.bytes : form.heartbeat();
      }
      if (chunk?.isLast === true) return;
      position = chunk?.position ?? position;
      const reason = await check();
      if (reason !== undefined) return yield end(reason);
    }
  } catch (error) {
    yield end(isUnavailable(error) ? error.code : 'internal_error');
    if (!isUnavailable(error)) throw error;
  } finally {
    if (given > 0) gaveOut(given);
  }
}
