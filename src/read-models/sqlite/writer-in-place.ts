import { monotonicMs, pause } from '../../async/clock';
import { isBusy } from '../../sqlite/database';
import type { Thread } from '../../sqlite/thread';
import { openWriter, type WriteRequest } from './writer';

const RETRY_MS = 5;

/** A writer in the calling thread, for threads that may block: nothing has to be sent. */
export const writerInPlace = (folder: string): Thread => {
  const writer = openWriter(folder);
  return {
    call: async <T>(request: unknown, withinMs: number): Promise<T> => {
      const end = monotonicMs() + withinMs;
      for (;;)
        try {
          return writer.write(request as WriteRequest) as T;
        } catch (error) {
          if (!isBusy(error) || monotonicMs() > end) throw error;
          await pause(RETRY_MS);
        }
    },
    close: async () => writer.close(),
  };
};
