import {
  appendChannel,
  openAppender,
  type AppenderData,
  type AppendRequest,
} from '../../src/event-log/sqlite/appender';
import { mustBeOurLog } from '../../src/event-log/sqlite/log-file';
import type { Thread } from '../../src/sqlite/thread';

/** The appender of a SQLite log without its thread, which takes longer to start than most tests take. */
export const inPlaceAppender = ({ path, prefix }: AppenderData): Thread => {
  let opened:
    { appender: ReturnType<typeof openAppender>; channel: ReturnType<typeof appendChannel> } | undefined;
  const open = () => {
    mustBeOurLog(path, prefix);
    return { appender: openAppender(path, prefix), channel: appendChannel(path) };
  };
  return {
    call: async <T>(request: unknown): Promise<T> => {
      await new Promise((resolve) => setImmediate(resolve));
      const { appender, channel } = (opened ??= open());
      if (request === 'ready') return true as T;
      const [outcome] = appender.appendGroup([request as AppendRequest]);
      channel.postMessage('');
      if (outcome === undefined || 'error' in outcome) throw outcome?.error;
      return outcome.value as T;
    },
    close: async () => {
      opened?.channel.close();
      opened?.appender.close();
      opened = undefined;
    },
  };
};
