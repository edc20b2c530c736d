import { monotonicMs, pause } from '../../clock';
import { isBusy } from '../../sqlite/database';
import { beginWrite, endWrite, whenWritable } from '../../sqlite/suspension';
import type { Thread } from '../../sqlite/thread';
import { openWriter, type WriteRequest } from './writer';

const RETRY_MS = 5;

/** What is written in this thread, between two moments at which the process may be stopped. */
const writing = async <T>(work: () => T): Promise<T> => {
  while (!beginWrite()) await whenWritable();
  try {
    return work();
  } finally {
    endWrite();
  }
};

/** The writer without a thread of its own, for a thread that answers nobody meanwhile: nothing has to be sent. */
export const writerInPlace = (folder: string): Thread => {
  const writer = openWriter(folder);
  return {
    call: async <T>(request: unknown, withinMs: number): Promise<T> => {
      const end = monotonicMs() + withinMs;
      for (;;)
        try {
          return await writing(() => writer.write(request as WriteRequest) as T);
        } catch (error) {
          if (!isBusy(error) || monotonicMs() > end) throw error;
          await pause(RETRY_MS);
        }
    },
    close: () => writing(() => writer.close()),
  };
};
