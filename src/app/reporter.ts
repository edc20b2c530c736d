import type { Logger } from 'pino';
import { monotonicMs } from '../clock';
import { codeOf } from '../fault';
import type { Report } from './adapters';

/** How often the same warning is logged. While a store is away, the same operation fails many times a second. */
const AGAIN_MS = 60_000;
const MAX_REMEMBERED = 1_000;

interface Logged {
  readonly atMs: number;
  /** How often it was reported since. */
  repeated: number;
}

/** What stops everything is more than a warning. */
const levelOf = (error: unknown): 'error' | 'warn' => (codeOf(error) === 'log_set_back' ? 'error' : 'warn');

/** Logs reports, the same one at most once a minute, with the number of those in between. Good news ends that. */
export const reporter = (logger: Pick<Logger, 'info' | 'warn' | 'error'>, nowMs = monotonicMs): Report => {
  const logged = new Map<string, Logged>();
  return (what, error) => {
    if (error === undefined) {
      logged.clear();
      return logger.info(what);
    }
    const key = `${what} ${codeOf(error)}`;
    const last = logged.get(key);
    if (last !== undefined && nowMs() - last.atMs < AGAIN_MS) return void (last.repeated += 1);
    if (logged.size >= MAX_REMEMBERED) logged.clear();
    logged.set(key, { atMs: nowMs(), repeated: 0 });
    const since = (last?.repeated ?? 0) > 0 ? { repeated: last?.repeated } : {};
    logger[levelOf(error)]({ err: error, ...since }, what);
  };
};
