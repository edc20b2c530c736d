import { randomUUID } from 'node:crypto';
import { monotonicMs } from '../clock';
import { codeOf, fault, messageOf } from '../fault';
import type { EventLog } from './event-log';

/** A log whose appends are watched: a server that cannot write must not look healthy. */
export interface Writable {
  readonly log: EventLog;
  /** Throws `log_unavailable` when appends fail, or would fail. */
  mustBeWritable(): Promise<void>;
}

/** So long a failed append counts, unless one succeeds. */
const RECENT_MS = 5_000;

const UNAVAILABLE = new Set(['log_unavailable', 'outcome_unknown']);

export const watched = (log: EventLog, probe: () => Promise<void>): Writable => {
  let failure: { readonly at: number; readonly message: string } | undefined;
  const append: EventLog['append'] = async (...request) => {
    try {
      const appended = await log.append(...request);
      failure = undefined;
      return appended;
    } catch (error) {
      const isUnavailable = UNAVAILABLE.has(codeOf(error) ?? '');
      failure = isUnavailable ? { at: monotonicMs(), message: messageOf(error) } : undefined;
      throw error;
    }
  };
  return {
    log: { ...log, append },
    mustBeWritable: async () => {
      if (failure !== undefined && monotonicMs() - failure.at < RECENT_MS)
        throw fault('log_unavailable', `Writes fail. ${failure.message}`);
      await probe();
    },
  };
};

/** No stream is as long: an append there is refused without a trace, but only by a log that could have written. */
const BEYOND = Number.MAX_SAFE_INTEGER - 1;
const PROBE_MS = 700;

/** Takes the log's write lock for a moment and writes nothing. */
export const probeWriteLock = async (log: EventLog, stream: string): Promise<void> => {
  const event = { id: randomUUID(), type: 'Probe', data: {}, metadata: {} };
  await log.append(stream, [event], BEYOND, PROBE_MS).catch((error: unknown) => {
    if (codeOf(error) === 'stream_changed') return;
    throw fault(
      'log_unavailable',
      `The event log cannot be written: another process, perhaps a stopped one, holds its lock. ${messageOf(error)}`,
    );
  });
};
