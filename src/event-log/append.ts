import { monotonicMs } from '../async/clock';
import { codeOf, messageOf, moreOf } from '../fault';
import { logFault, type Appended, type EventLog, type Expected, type NewEvent } from './event-log';

/** The share of the time that the first attempt may use. */
const FIRST_SHARE = 0.6;

/** Conclusive answers to the second attempt: the first wrote nothing, or its stream or log is gone. */
const CERTAIN: ReadonlySet<string | undefined> = new Set([
  'stream_changed',
  'history_missing',
  'log_set_back',
]);

/**
 * Appends, and repeats an attempt that got no answer: appends are idempotent, so the second answer tells what became of
 * the first. `attempt` rejects with `no_answer` if it does not know.
 */
export const appendUntilCertain = async (
  attempt: (withinMs: number) => Promise<Appended>,
  withinMs: number,
): Promise<Appended> => {
  const end = monotonicMs() + withinMs;
  try {
    return await attempt(Math.ceil(withinMs * FIRST_SHARE));
  } catch (error) {
    if (codeOf(error) !== 'no_answer') throw error;
  }
  try {
    return await attempt(Math.max(1, end - monotonicMs()));
  } catch (error) {
    if (CERTAIN.has(codeOf(error))) throw error;
    throw logFault(
      'outcome_unknown',
      `The event log did not confirm whether the append succeeded. ${messageOf(error)}`,
    );
  }
};

/** Appends to the end of a stream, wherever that is: on a conflict, retries at the actual end. */
export const appendToEnd = async (
  log: Pick<EventLog, 'append'>,
  stream: string,
  events: readonly NewEvent[],
  withinMs?: number,
): Promise<Appended> => {
  for (let end: Expected = 'no_stream'; ;)
    try {
      return await log.append(stream, events, end, withinMs);
    } catch (error) {
      if (codeOf(error) !== 'stream_changed') throw error;
      const actual = Number(moreOf(error)['actual']);
      end = actual < 0 ? 'no_stream' : actual;
    }
};
