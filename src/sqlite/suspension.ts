import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import { monotonicMs, pause } from '../clock';

/**
 * A process that is stopped (Ctrl-Z) while it holds the write lock of a file would block all other writers. So all threads
 * of a process share two numbers, and whoever stops the process waits until nothing is being written.
 */
const NAME = 'tenant-ledger suspension';
const SUSPENDING = 0;
/** Calls to writers that are not answered yet. */
const CALLS = 1;

/** Every thread inherits what is set here. */
const sharedNumbers = (): Int32Array<SharedArrayBuffer> => {
  const known = getEnvironmentData(NAME) as unknown as SharedArrayBuffer | undefined;
  const buffer = known ?? new SharedArrayBuffer(8);
  if (known === undefined) setEnvironmentData(NAME, buffer);
  return new Int32Array(buffer);
};

const numbers = sharedNumbers();

const LOOK_AGAIN_MS = 5;

const isSuspending = (): boolean => Atomics.load(numbers, SUSPENDING) === 1;

/** Counts a call to a writer, to be ended with `endWrite`. False: not now, the process is about to stop. */
export const beginWrite = (): boolean => {
  // Counted before the flag is read, and `holdWrites` reads the count after it has set the flag: one of the two sees the other.
  Atomics.add(numbers, CALLS, 1);
  if (!isSuspending()) return true;
  endWrite();
  return false;
};

export const endWrite = (calls = 1): void => void Atomics.sub(numbers, CALLS, calls);

let resuming: Promise<void> | undefined;

const resumed = async (): Promise<void> => {
  while (isSuspending()) await pause(LOOK_AGAIN_MS);
  resuming = undefined;
};

/** All who wait continue in the order in which they came. */
export const whenWritable = (): Promise<void> => (resuming ??= resumed());

/** Somebody waits already: later callers queue up behind them. */
export const someoneWaits = (): boolean => resuming !== undefined;

/** Lets no other write begin, and waits until those under way are done. False: they were not within that time. */
export const holdWrites = async (withinMs: number): Promise<boolean> => {
  Atomics.store(numbers, SUSPENDING, 1);
  const end = monotonicMs() + withinMs;
  while (Atomics.load(numbers, CALLS) > 0) {
    if (monotonicMs() > end) return false;
    await pause(LOOK_AGAIN_MS);
  }
  return true;
};

export const resumeWrites = (): void => void Atomics.store(numbers, SUSPENDING, 0);
