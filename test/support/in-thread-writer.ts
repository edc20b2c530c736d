import type { Thread } from '../../src/async/thread';
import { openWriter, type WriteRequest } from '../../src/read-models/sqlite/writer';

/** Where a test may make writes of SQLite read models fail. */
export interface WriteHooks {
  /** Before every single step of a commit that changes the file. */
  readonly onWrite?: () => void;
  /** After a request is done: if it throws, the caller gets that error instead of the result. */
  readonly onAnswer?: (what: string) => void;
}

/** The writer without its thread: failures happen exactly where a test wants them. */
export const inThreadWriter =
  ({ onWrite, onAnswer }: WriteHooks) =>
  (folder: string): Thread => {
    const writer = openWriter(folder, onWrite);
    return {
      call: async <T>(request: unknown): Promise<T> => {
        const received = structuredClone(request) as WriteRequest;
        const answer = writer.write(received);
        onAnswer?.(received.do);
        return answer as T;
      },
      close: async () => writer.close(),
    };
  };
