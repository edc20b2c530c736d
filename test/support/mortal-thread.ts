import { workerData } from 'node:worker_threads';
import { yieldToEventLoop } from '../../src/async/clock';
import { answerInThread } from '../../src/async/thread';

/** A thread for tests: it echoes, takes its time, refuses or dies, as requested. */
type Request =
  | { readonly echo: unknown }
  | { readonly busyMs: number }
  | { readonly refuse: string }
  | 'count'
  | 'group'
  | 'throw'
  | 'busy'
  | { readonly report: unknown }
  /** Answers with its number, after a turn of the event loop. */
  | { readonly later: number }
  | 'throwLater'
  | 'die';

/** Shared counters: the naps started, and whether it is busy. */
const { naps, busy } = workerData as Record<'naps' | 'busy', Int32Array>;

let answeredCount = 0;

const nap = (ms: number): void => {
  Atomics.add(naps, 0, 1);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
};

const report = answerInThread({
  answer: async (requests) => {
    const outcomes = (requests as Request[]).map((request) => {
      answeredCount += 1;
      if (request === 'count') return { value: answeredCount };
      if (request === 'group') return { value: requests.length };
      if (request === 'busy')
        return Atomics.load(busy, 0) > 0 ? { error: new Error('busy') } : { value: 'free' };
      if (request === 'throw') throw new Error('the whole group fails');
      if (request === 'die') process.exit(3);
      if (request === 'throwLater') {
        setImmediate(() => {
          throw new Error('it was too much');
        });
        return { value: new Promise<never>(() => undefined) };
      }
      if ('later' in request) return { value: yieldToEventLoop().then(() => request.later) };
      if ('report' in request) {
        report(request.report);
        return { value: 'reported' };
      }
      if ('echo' in request) return { value: request.echo };
      if ('refuse' in request)
        return { error: Object.assign(new Error('no'), { code: request.refuse, more: { why: 'told to' } }) };
      nap(request.busyMs);
      return { value: 'rested' };
    });
    for (const outcome of outcomes)
      if ('value' in outcome) Object.assign(outcome, { value: await outcome.value });
    return outcomes;
  },
  isRetried: (error) => error instanceof Error && error.message === 'busy',
  close: () => undefined,
});
