import { closeSync, openSync, readSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

/**
 * Loaded into a server before anything else: on SIGUSR2 it says how long the thread that answers HTTP was held since the
 * last time, and begins anew. `delay` is what a timer sees, other processes' share of the machine included; `held` is the
 * thread's own processor time from one look to the next, which only its own work makes long (Linux; elsewhere it is
 * what a clock says).
 */
const LOOK_MS = 2;

const processorMs = (): (() => number) => {
  if (process.platform !== 'linux') return () => performance.now();
  const text = Buffer.alloc(64);
  const file = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
  process.once('exit', () => closeSync(file));
  return () => Number(text.toString('latin1', 0, readSync(file, text, 0, 64, 0)).split(' ')[0]) / 1e6;
};

if (isMainThread) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const now = processorMs();
  let held: number[] = [];
  let before = now();
  setInterval(() => {
    const after = now();
    held.push(after - before);
    before = after;
  }, LOOK_MS).unref();
  delay.enable();

  process.on('SIGUSR2', () => {
    const sorted = Float64Array.from(held).toSorted();
    const report = {
      looks: sorted.length,
      held: { p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0, longest: sorted.at(-1) ?? 0 },
      delay: { p99: delay.percentile(99) / 1e6, longest: delay.max / 1e6 },
    };
    process.stderr.write(`${JSON.stringify({ event_loop: report })}\n`);
    held = [];
    delay.reset();
  });
}
