import { workerData } from 'node:worker_threads';
import { checkpoint } from '../../sqlite/database';
import { answerInThread } from '../../sqlite/thread';
import { appendChannel, openAppender, type AppenderData, type AppendRequest } from './appender';
import { mustBeOurLog } from './log-file';

const { path, prefix } = workerData as AppenderData;

// This thread may be restarted while the server runs; a log that has disappeared must not be created again.
mustBeOurLog(path, prefix);
const appender = openAppender(path, prefix);
const channel = appendChannel(path);

answerInThread({
  answer: (requests) => {
    const appends = requests.filter((request) => request !== 'ready') as AppendRequest[];
    const outcomes = appends.length === 0 ? [] : [...appender.appendGroup(appends)];
    if (appends.length > 0) channel.postMessage('');
    return requests.map((request) =>
      request === 'ready' ? { value: true } : (outcomes.shift() ?? { value: null }),
    );
  },
  tidy: () => checkpoint(appender.db),
  close: () => {
    channel.close();
    appender.close();
  },
});
