import { workerData } from 'node:worker_threads';
import { writing } from '../../src/read-models/sqlite/writer';
import { answerInThread } from '../../src/async/thread';

/** The writer thread of the read models, which exits at the k-th write point. */
export interface FailingWriterData {
  readonly folder: string;
  /** The write points left until it dies; shared, so that its successor continues counting. */
  readonly left: Int32Array;
}

const { folder, left } = workerData as FailingWriterData;

answerInThread(
  writing(folder, () => {
    if (Atomics.sub(left, 0, 1) === 1) process.exit(1);
  }),
);
