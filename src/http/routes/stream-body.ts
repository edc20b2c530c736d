import { Readable } from 'node:stream';
import { isoNow, monotonicMs, threadMs } from '../../async/clock';
import { codeOf, fault } from '../../fault';
import type { EndReason } from '../../audit/event-stream';
import { holds } from '../../domain/authority';
import type { Stores } from '../dependencies';
import { MAX_READ_AGE_MS } from '../handle';
import type { RouteRequest } from './route';

/** How long a client may read nothing before it is cut off. Unread data is not kept for it. */
const STALLED_MS = 30_000;

export interface StreamBody {
  /** Aborted when the client has stalled: the next chunk is the last one, and says why. */
  readonly stalled: AbortController;
  readonly onClosed: () => void;
  readonly stalledMs?: number;
  /** How long it then has to read what was sent, including the reason at the end. */
  readonly lastMs?: number;
}

/**
 * Pulls the next chunk when there is room for it. Not `Readable.from`, which waits for the next chunk before it closes:
 * for a quiet tenant that may never come.
 */
export const streamBody = (
  chunks: AsyncGenerator<Uint8Array | string>,
  { stalled, onClosed, stalledMs = STALLED_MS, lastMs = stalledMs / 6 }: StreamBody,
): Readable => {
  let timer: NodeJS.Timeout | undefined;

  const pushNext = async (body: Readable): Promise<void> => {
    const { done, value } = await chunks.next();
    body.push(done === true ? null : value);
    if (done !== true && !body.destroyed && !stalled.signal.aborted) watch(body);
  };
  /** If the timer fires late, this thread was blocked, so the client may not have stalled. */
  const watch = (body: Readable): void => {
    const due = threadMs() + stalledMs;
    const isLate = (): boolean => threadMs() - due > stalledMs / 10;
    timer = setTimeout(() => (isLate() ? watch(body) : cut(body)), stalledMs);
  };
  const cut = (body: Readable): void => {
    stalled.abort();
    timer = setTimeout(() => body.destroy(fault('reader_stalled', 'The reader took nothing.')), lastMs);
    pushNext(body)
      .then(() => body.push(null))
      .catch((error: Error) => body.destroy(error));
  };

  return new Readable({
    read() {
      if (stalled.signal.aborted) return;
      clearTimeout(timer);
      pushNext(this).catch((error: Error) => this.destroy(error));
    },
    destroy(error, closed) {
      clearTimeout(timer);
      onClosed();
      // It may be waiting for room that will never be there: let it release what it has open.
      chunks.return(undefined).catch(() => undefined);
      closed(error);
    },
  });
};

const RECHECK_MS = 1_000;

/** A key may expire, be revoked or lose the permission while its stream is open. */
export const stillAllowed =
  ({ tenantId, caller, permission = '' }: RouteRequest<unknown>, { ledger }: Stores) =>
  async (): Promise<EndReason | undefined> => {
    const key = { tenantId, digest: caller.digest, at: isoNow(), deadline: monotonicMs() + RECHECK_MS };
    try {
      const { application } = await ledger.identify(key, MAX_READ_AGE_MS);
      return holds(application, permission) ? undefined : 'permission_missing';
    } catch (error) {
      if (codeOf(error) === 'key_refused') return 'key_refused';
      throw error;
    }
  };

/** A stream that cannot be started leaves its slot to others. */
export const orRelease = <T>(start: () => T, release: () => void): T => {
  try {
    return start();
  } catch (error) {
    release();
    throw error;
  }
};
