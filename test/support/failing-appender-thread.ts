import { workerData } from 'node:worker_threads';
import { answerInThread } from '../../src/async/thread';
import {
  openAppender,
  type AppenderFile,
  type AppenderRequest,
  type AppendRequest,
} from '../../src/event-log/sqlite/sqlite-event-log';
import { isBusy } from '../../src/sqlite/database';
import { settled } from './settled';

/** The appender thread of a log on a failing disk: its commits throw, some of them after they have taken effect. */
export interface FailingAppenderData extends AppenderFile {
  readonly how: 'before' | 'rolled back' | 'after';
  /** How many commits are still going to fail. */
  readonly left: Int32Array;
}

const { path, how, left } = workerData as FailingAppenderData;
const appender = openAppender(path);
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
  answer: (requests) =>
    settled(
      (requests[0] as AppenderRequest).type === 'open'
        ? [{ value: true }]
        : appender.appendGroup(requests as AppendRequest[]),
    ),
  isRetried: isBusy,
  close: () => appender.close(),
});
