import { beforeDeadline } from '../async/clock';
import { logFault } from '../event-log/event-log';

/** Serializes the writes of this process to each stream, in order of arrival; each waits only until its deadline. */
type StreamQueue = <T>(stream: string, deadline: number, work: () => Promise<T>) => Promise<T>;

const tooMany = () => logFault('log_unavailable', 'Too many writes are queued for this tenant.');

export const streamQueue = (): StreamQueue => {
  const tails = new Map<string, Promise<unknown>>();
  return async (stream, deadline, work) => {
    const before = tails.get(stream);
    let done = (): void => undefined;
    const own = new Promise<void>((resolve) => (done = resolve));
    const tail = before?.then(() => own) ?? own;
    tails.set(stream, tail);
    // `tail` waits for all before it too: this one may time out while an earlier write is still running.
    void tail.then(() => tails.get(stream) === tail && tails.delete(stream));
    try {
      if (before !== undefined) await beforeDeadline(before, deadline, tooMany);
      return await work();
    } finally {
      done();
    }
  };
};
