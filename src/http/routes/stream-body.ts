import { Readable } from 'node:stream';
import { threadMs } from '../../clock';
import { fault } from '../../fault';

/** How long a reader may take nothing before it is cut off. What it has not taken is not kept for it. */
const STALLED_MS = 30_000;
/** How long it may still take what was sent, with the reason at its end. */
const LAST_MS = 5_000;

interface StreamBody {
  /** Aborted when the reader has stalled: the next text is the last one, and says why. */
  readonly stalled: AbortController;
  readonly onClosed: () => void;
  readonly stalledMs?: number;
  readonly lastMs?: number;
}

/**
 * Takes the next text when there is room for it. Not `Readable.from`, which waits for the next text before it closes: of a
 * quiet tenant that may never come.
 */
export const streamBody = (
  chunks: AsyncGenerator<string>,
  { stalled, onClosed, stalledMs = STALLED_MS, lastMs = LAST_MS }: StreamBody,
): Readable => {
  let timer: NodeJS.Timeout | undefined;

  const pushNext = async (body: Readable): Promise<void> => {
    const { done, value } = await chunks.next();
    body.push(done === true ? null : value);
    if (done !== true && !body.destroyed && !stalled.signal.aborted) watch(body);
  };
  /** A timer that fires late was held up with everything else here: that says nothing of the reader. */
  const watch = (body: Readable): void => {
    const due = threadMs() + stalledMs;
    const late = (): boolean => threadMs() - due > stalledMs / 10;
    timer = setTimeout(() => (late() ? watch(body) : cut(body)), stalledMs);
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
      // It may wait for room that will never be there: what it has open is closed.
      chunks.return(undefined).catch(() => undefined);
      closed(error);
    },
  });
};
