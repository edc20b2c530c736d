import { workerData } from 'node:worker_threads';
import { answerInThread } from '../../src/async/thread';
import {
  appending,
  type AppenderFile,
  type AppenderRequest,
} from '../../src/event-log/sqlite/sqlite-event-log';
import { settled } from './settled';

/** The appender thread of a log on a failing disk: its commits throw, some of them after they have taken effect. */
export interface FailingAppenderData extends AppenderFile {
  readonly how: 'before' | 'rolled back' | 'after';
  /** How many commits are still going to fail. */
  readonly left: Int32Array;
}

const { how, left, ...file } = workerData as FailingAppenderData;
const appender = appending(file);
const { db } = appender;
const exec = db.exec.bind(db);

const failing = (sql: string): void => {
  if (sql !== 'COMMIT' || Atomics.load(left, 0) === 0) return exec(sql);
  Atomics.sub(left, 0, 1);
  if (how === 'rolled back') exec('ROLLBACK');
  if (how === 'after') exec(sql);
  throw Object.assign(new Error('disk I/O error'), { code: 'ERR_SQLITE_ERROR', errcode: 1034 });
};
Object.defineProperty(db, 'exec', { value: failing });

answerInThread({
  ...appender,
  answer: (requests) => settled(appender.answer(requests as AppenderRequest[])),
});
