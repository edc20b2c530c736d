import { readdirSync, readFileSync } from 'node:fs';

/** What the scheduler says about the threads of a process: nothing on other systems than Linux. */
const threadsOf = (pid: number): readonly { readonly ranMs: number; readonly waitedMs: number }[] => {
  try {
    return readdirSync(`/proc/${pid}/task`).map((thread) => {
      const text = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8');
      const [ranNs = 0, waitedNs = 0] = text.split(' ').map(Number);
      return { ranMs: ranNs / 1e6, waitedMs: waitedNs / 1e6 };
    });
  } catch {
    return [];
  }
};

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/**
 * How much of the time since a process was started is its own: without the time that its threads have waited for a
 * processor, which is up to the machine, but no less than the processor time that they have used.
 */
export const ownTimeMs = (pid: number, elapsedMs: number): number => {
  const threads = threadsOf(pid);
  return Math.max(
    sum(threads.map(({ ranMs }) => ranMs)),
    elapsedMs - sum(threads.map(({ waitedMs }) => waitedMs)),
  );
};
