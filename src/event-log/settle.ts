import { monotonicMs } from '../clock';
import { codeOf, messageOf } from '../fault';
import { logFault, type Appended } from './event-log';

/** The share of the time that the first attempt may use. */
const FIRST_SHARE = 0.6;

/**
 * Appends, and settles an attempt that got no answer by making the same attempt again: the same ids at the same
 * revision are recognised, so the second answer tells what became of the first. `attempt` rejects with `no_answer`
 * when it does not know.
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
    if (codeOf(error) === 'stream_changed') throw error;
    throw logFault('outcome_unknown', `The event log did not say whether it wrote. ${messageOf(error)}`);
  }
};
