import type { Outcome, Thread } from '../../src/async/thread';
import { writing, type WriteRequest } from '../../src/read-models/sqlite/writer';

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
    const { answer, close } = writing(folder, onWrite);
    return {
      call: async <T>(request: unknown): Promise<T> => {
        const received = structuredClone(request) as WriteRequest;
        const [outcome] = answer([received]) as readonly [Outcome];
        if ('error' in outcome) throw outcome.error;
        onAnswer?.(received.do);
        return outcome.value as T;
      },
      close: async () => close(),
    };
  };
