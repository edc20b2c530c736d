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

/**
 * Tells a process from another one that had the same id before the machine or the container was restarted. Undefined:
 * there is no such process, or this system cannot tell.
 */
const markOf = (pid: number): string | undefined => {
  const boot = read('/proc/sys/kernel/random/boot_id');
  // The name of the program comes before, in parentheses, and may contain spaces.
  const startedAt = read(`/proc/${pid}/stat`)?.split(') ').at(-1)?.split(' ')[19];
  if (boot === undefined || startedAt === undefined) return undefined;
  return createHash('sha256').update(`${boot} ${startedAt}`).digest('hex').slice(0, 8);
};

/** Tells an operator the machine and the process. The middle identifies the process, and makes the name unique. */
export const holderName = (): string =>
  `${hostname()} ${markOf(process.pid) ?? 'unmarked'}-${randomBytes(4).toString('hex')} ${process.pid}`;

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
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
