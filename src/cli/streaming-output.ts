import { once } from 'node:events';

/** Writes to stdout, and waits for a reader that is slower than we are. */
export const writeOut = async (text: string | Buffer, signal: AbortSignal): Promise<void> => {
  if (signal.aborted || process.stdout.write(text)) return;
  await once(process.stdout, 'drain', { signal }).catch(() => undefined);
};

const OUTPUT_LOST = 'output lost';

/** Aborted when the user interrupts the command, or nobody reads its output any more. */
export const untilInterrupted = (): AbortSignal => {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());
  process.stdout.once('error', () => stop.abort(OUTPUT_LOST));
  return stop.signal;
};

/** Nobody knows how much of the output was read before. */
export const isOutputLost = ({ reason }: AbortSignal): boolean => reason === OUTPUT_LOST;
