import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { EventLoopDelay } from '../http/pages/operations-page';

const RESOLUTION_MS = 10;
const WINDOW_MS = 60_000;
const NS = 1_000_000;

/** Measures the delay of the event loop. Not with the histogram of the metrics: each scrape clears that one. */
export const measuredDelay = () => {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  /** What is measured includes the time between two measurements. */
  const lateMs = (ns: number): number => Math.max(0, ns / NS - RESOLUTION_MS);
  const current = (): EventLoopDelay =>
    histogram.count === 0
      ? { p99: 0, max: 0 }
      : { p99: lateMs(histogram.percentile(99)), max: lateMs(histogram.max) };
  let before: EventLoopDelay = { p99: 0, max: 0 };
  const timer = setInterval(() => {
    before = current();
    histogram.reset();
  }, WINDOW_MS).unref();
  return {
    recent: (): EventLoopDelay => {
      const now = current();
      return { p99: Math.max(now.p99, before.p99), max: Math.max(now.max, before.max) };
    },
    close: (): void => {
      clearInterval(timer);
      histogram.disable();
    },
  };
};
