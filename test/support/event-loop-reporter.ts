import { closeSync, openSync, readSync } from 'node:fs';
import { PerformanceObserver } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

/**
 * Loaded into a server before anything else: on SIGUSR2 it reports for how long the thread that serves HTTP was blocked
 * since the last time, and starts again. `held` is the thread's own processor time from one sample to the next, which only
 * its own work makes long (Linux; elsewhere it is wall-clock time); `working` is the same without the garbage collections
 * in between; `starved` is the share of the time in which it could have worked but others had the processors.
 */
const LOOK_MS = 2;

/** For how long the thread has had a processor, and for how long it has waited for one, in milliseconds. */
const processorTimes = (): (() => readonly [had: number, waited: number]) => {
  if (process.platform !== 'linux') return () => [performance.now(), 0];
  const text = Buffer.alloc(64);
  const file = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
  process.once('exit', () => closeSync(file));
  return () => {
    const [had, waited] = text.toString('latin1', 0, readSync(file, text, 0, 64, 0)).split(' ');
    return [Number(had) / 1e6, Number(waited) / 1e6];
  };
};

interface Span {
  readonly begin: number;
  readonly end: number;
}

const statisticsOf = (times: readonly number[]) => {
  const sorted = Float64Array.from(times).toSorted();
  return { p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0, longest: sorted.at(-1) ?? 0 };
};

const overlap = (one: Span, other: Span): number =>
  Math.max(0, Math.min(one.end, other.end) - Math.max(one.begin, other.begin));

if (isMainThread) {
  const now = processorTimes();
  let looks: (Span & { readonly held: number })[] = [];
  let collections: Span[] = [];
  let before = { at: performance.now(), had: now()[0] };
  let last = { at: performance.now(), waited: now()[1] };
  const observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries())
      collections.push({ begin: startTime, end: startTime + duration });
  });
  observer.observe({ entryTypes: ['gc'] });
  setInterval(() => {
    const after = { at: performance.now(), had: now()[0] };
    looks.push({ begin: before.at, end: after.at, held: after.had - before.had });
    before = after;
  }, LOOK_MS).unref();

  const withoutCollections = (look: (typeof looks)[number]): number =>
    collections.reduce((left, span) => left - overlap(look, span), look.held);

  process.on('SIGUSR2', () => {
    const reported = { at: performance.now(), waited: now()[1] };
    const report = {
      starved: (reported.waited - last.waited) / (reported.at - last.at),
      held: statisticsOf(looks.map(({ held }) => held)),
      working: statisticsOf(looks.map(withoutCollections)),
    };
    process.stderr.write(`${JSON.stringify({ event_loop: report })}\n`);
    [looks, collections, last] = [[], [], reported];
  });
}
