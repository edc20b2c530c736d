import { beforeDeadline } from '../clock';
import { logFault } from '../event-log/event-log';

/** Lets one write at a time at each stream of this process, in order of arrival, each only until its deadline. */
export type StreamQueue = <T>(stream: string, deadline: number, work: () => Promise<T>) => Promise<T>;

const tooMany = () => logFault('log_unavailable', 'Too many writes wait for this tenant.');

export const streamQueue = (): StreamQueue => {
  const tails = new Map<string, Promise<unknown>>();
  return async (stream, deadline, work) => {
    const before = tails.get(stream);
    let done = (): void => undefined;
    const mine = new Promise<void>((resolve) => (done = resolve));
    const tail = before?.then(() => mine) ?? mine;
    tails.set(stream, tail);
    // Only when all before it are done: one that gave up may leave another at work.
    void tail.then(() => tails.get(stream) === tail && tails.delete(stream));
    try {
      if (before !== undefined) await beforeDeadline(before, deadline, tooMany);
      return await work();
    } finally {
      done();
    }
  };
};
