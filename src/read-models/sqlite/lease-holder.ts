import { hostname } from 'node:os';

/** A holder's name begins with its machine and ends with the number of its process, as in `host 4711`. */
const partsOf = (holder: string): { readonly host: string | undefined; readonly process: number } => {
  const words = holder.split(' ');
  return { host: words[0], process: Number(words.at(-1)) };
};

/** A process that died cannot renew its lease, which is free at once. Processes of other machines cannot be seen. */
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
