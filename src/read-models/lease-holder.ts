import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';

const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
};

/** What the system says about a process, from its state on. Its name comes before, in parentheses, and may have spaces. */
const statOf = (pid: number): readonly string[] | undefined =>
  read(`/proc/${pid}/stat`)?.split(') ').at(-1)?.split(' ');

/**
 * Tells a process from another one that had the same id before the machine or the container was restarted. Undefined:
 * there is no such process, or this system cannot tell.
 */
const markOf = (pid: number): string | undefined => {
  const boot = read('/proc/sys/kernel/random/boot_id');
  const startedAt = statOf(pid)?.[19];
  if (boot === undefined || startedAt === undefined) return undefined;
  return createHash('sha256').update(`${boot} ${startedAt}`).digest('hex').slice(0, 8);
};

/** Tells an operator the machine and the process. The middle identifies the process, and makes the name unique. */
export const holderName = (): string =>
  `${hostname()} ${markOf(process.pid) ?? 'unmarked'}-${randomBytes(4).toString('hex')} ${process.pid}`;

/** A zombie has ended, and only its parent has not noticed yet. */
const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return statOf(pid)?.[0] !== 'Z';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
};

/** Whether the process with this name has ended. Only processes of this machine can be checked. */
export const isGone = (holder: string): boolean => {
  const words = holder.split(' ');
  if (words[0] !== hostname()) return false;
  const pid = Number(words.at(-1));
  if (!isRunning(pid)) return true;
  const [, mark] = /^([0-9a-f]{8})-/.exec(words[1] ?? '') ?? [];
  return mark !== undefined && (markOf(pid) ?? mark) !== mark;
};
