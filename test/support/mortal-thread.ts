import { workerData } from 'node:worker_threads';
import { pause } from '../../src/async/clock';
import { answerInThread } from '../../src/async/thread';

/** A thread for tests: it echoes, takes its time, refuses or dies, as requested. */
type Request =
  | { readonly echo: unknown }
  | { readonly busyMs: number }
  | { readonly refuse: string }
  | 'count'
  | 'throw'
  | 'busy'
  | { readonly report: unknown }
  /** Answers after this time, in which it answers others. */
  | { readonly laterMs: number }
  | 'throwLater'
  | 'die';

/** Shared counters: the naps started, and whether it is busy. */
const { naps, busy } = workerData as Record<'naps' | 'busy', Int32Array>;

let answeredCount = 0;

const nap = (ms: number): void => {
  Atomics.add(naps, 0, 1);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
};

const refusal = (code: string): Error => Object.assign(new Error('no'), { code, more: { why: 'told to' } });

const answerTo = async (request: Request): Promise<unknown> => {
  answeredCount += 1;
  if (request === 'count') return answeredCount;
  if (request === 'throw') throw new Error('it fails');
  if (request === 'die') process.exit(3);
  if (request === 'throwLater') {
    setImmediate(() => {
      throw new Error('it was too much');
    });
    return new Promise<never>(() => undefined);
  }
  if (request === 'busy') {
    if (Atomics.load(busy, 0) > 0) throw new Error('busy');
    return 'free';
  }
  if ('laterMs' in request) return pause(request.laterMs).then(() => 'later');
  if ('report' in request) return report(request.report);
  if ('echo' in request) return request.echo;
  if ('refuse' in request) throw refusal(request.refuse);
  nap(request.busyMs);
  return 'rested';
};

const report = answerInThread({
  answer: (requests) => (requests as Request[]).map(answerTo),
  isRetried: (error) => error instanceof Error && error.message === 'busy',
  close: () => undefined,
});
