import { workerData } from 'node:worker_threads';
import { answerInThread } from '../../src/async/thread';
import {
  appending,
  type AppenderFile,
  type AppenderRequest,
} from '../../src/event-log/sqlite/sqlite-event-log';
import { settled } from './settled';

const appender = appending(workerData as AppenderFile);
answerInThread({
  ...appender,
  answer: (requests) => settled(appender.answer(requests as AppenderRequest[])),
});
