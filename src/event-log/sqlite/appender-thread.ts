import { workerData } from 'node:worker_threads';
import { answerInThread } from '../../sqlite/thread-inside';
import { openAppender, type AppendRequest } from './appender';

const appender = openAppender((workerData as { path: string }).path);

answerInThread({
  answer: (requests) => {
    const appends = requests.filter((request) => request !== 'ready') as AppendRequest[];
    const outcomes = appends.length === 0 ? [] : [...appender.appendGroup(appends)];
    return requests.map((request) =>
      request === 'ready' ? { value: true } : (outcomes.shift() ?? { value: null }),
    );
  },
  close: () => appender.close(),
});
