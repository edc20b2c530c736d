import type { Logger } from 'pino';
import { monotonicMs } from '../async/clock';
import { codeOf } from '../fault';
import { TIMES } from '../times';
import type { Report } from './adapters';

const MAX_REMEMBERED = 1_000;

interface Logged {
  readonly atMs: number;
  /** The number of identical reports since then. */
  repeated: number;
}

/** A log that was rolled back stops everything. */
const levelOf = (error: unknown): 'error' | 'warn' => (codeOf(error) === 'log_set_back' ? 'error' : 'warn');

/** Logs reports. Repeats are logged at most once a minute, with their number. A recovery resets that. */
export const reporter = (logger: Pick<Logger, 'info' | 'warn' | 'error'>, nowMs = monotonicMs): Report => {
  const logged = new Map<string, Logged>();
  return (what, error) => {
    if (error === undefined) {
      logged.clear();
      return logger.info(what);
    }
    const key = `${what} ${codeOf(error)}`;
    const last = logged.get(key);
    if (last !== undefined && nowMs() - last.atMs < TIMES.sameWarningMs) return void (last.repeated += 1);
    if (logged.size >= MAX_REMEMBERED) logged.clear();
    logged.set(key, { atMs: nowMs(), repeated: 0 });
    const since = (last?.repeated ?? 0) > 0 ? { repeated: last?.repeated } : {};
    logger[levelOf(error)]({ err: error, ...since }, what);
  };
};
