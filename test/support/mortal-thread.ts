import { workerData } from 'node:worker_threads';
import { answerInThread } from '../../src/sqlite/thread';

/** A thread for tests: it echoes, takes its time, refuses or dies, as requested. */
type Request =
  | { readonly echo: unknown }
  | { readonly busyMs: number }
  | { readonly refuse: string }
  | 'count'
  | 'group'
  | 'throw'
  | 'die';

/** Shared counters: the naps started, the clean-ups run, and the threads not closed. */
const { naps, tidied, open } = workerData as Record<'naps' | 'tidied' | 'open', Int32Array>;
Atomics.add(open, 0, 1);

let answeredCount = 0;

const nap = (ms: number): void => {
  Atomics.add(naps, 0, 1);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
};

answerInThread({
  answer: (requests) =>
    (requests as Request[]).map((request) => {
      answeredCount += 1;
      if (request === 'count') return { value: answeredCount };
      if (request === 'group') return { value: requests.length };
      if (request === 'throw') throw new Error('the whole group fails');
      if (request === 'die') process.exit(3);
      if ('echo' in request) return { value: request.echo };
      if ('refuse' in request)
        return { error: Object.assign(new Error('no'), { code: request.refuse, more: { why: 'told to' } }) };
      nap(request.busyMs);
      return { value: 'rested' };
    }),
  tidy: () => {
    Atomics.add(tidied, 0, 1);
    throw new Error('nothing comes of it');
  },
  tidyMs: 20,
  close: () => void Atomics.sub(open, 0, 1),
});
