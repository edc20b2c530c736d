import { Readable } from 'node:stream';
import { threadMs } from '../../async/clock';
import { fault } from '../../fault';

/** How long a client may read nothing before it is cut off. Unread data is not kept for it. */
const STALLED_MS = 30_000;
/** How long it then has to read what was sent, including the reason at the end. */
const LAST_MS = 5_000;

interface StreamBody {
  /** Aborted when the client has stalled: the next chunk is the last one, and says why. */
  readonly stalled: AbortController;
  readonly onClosed: () => void;
  readonly stalledMs?: number;
  readonly lastMs?: number;
}

/**
 * Pulls the next chunk when there is room for it. Not `Readable.from`, which waits for the next chunk before it closes:
 * for a quiet tenant that may never come.
 */
export const streamBody = (
  chunks: AsyncGenerator<Uint8Array | string>,
  { stalled, onClosed, stalledMs = STALLED_MS, lastMs = LAST_MS }: StreamBody,
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
