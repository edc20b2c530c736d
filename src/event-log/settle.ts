import { monotonicMs } from '../clock';
import { codeOf, messageOf } from '../fault';
import { logFault, type Appended } from './event-log';

/** How much of the time the first attempt may use. */
const FIRST_SHARE = 0.6;

/** What the second attempt says for certain: nothing of the first is in the log, or it is gone with its stream or log. */
const CERTAIN: ReadonlySet<string | undefined> = new Set([
  'stream_changed',
  'history_missing',
  'log_set_back',
]);

/**
 * Appends, and settles an attempt that got no answer by repeating it: the same ids at the same revision are recognised,
 * so the second answer shows what became of the first. `attempt` rejects with `no_answer` when it does not know.
 */
export const settled = async (
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
