import { hostname } from 'node:os';

/** A holder's name starts with its host name and ends with its process id, as in `host 4711`. */
const partsOf = (holder: string): { readonly host: string | undefined; readonly process: number } => {
  const words = holder.split(' ');
  return { host: words[0], process: Number(words.at(-1)) };
};

/** The lease of a dead process is free at once. Only processes on this machine can be checked. */
export const isGone = (holder: string): boolean => {
  const { host, process: number } = partsOf(holder);
  if (host !== hostname()) return false;
  try {
    process.kill(number, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
};
