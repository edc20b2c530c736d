import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import { monotonicMs, pause } from '../clock';

/**
 * A process suspended (Ctrl-Z) while it holds the write lock of a file would block all other writers. So all threads of
 * a process share two numbers, and before suspending, the process waits until nothing is being written.
 */
const NAME = 'tenant-ledger suspension';
const SUSPENDING = 0;
/** The number of unanswered calls to writers. */
const CALLS = 1;

/** Worker threads inherit environment data. */
const sharedNumbers = (): Int32Array<SharedArrayBuffer> => {
  const known = getEnvironmentData(NAME) as unknown as SharedArrayBuffer | undefined;
  const buffer = known ?? new SharedArrayBuffer(8);
  if (known === undefined) setEnvironmentData(NAME, buffer);
  return new Int32Array(buffer);
};

const numbers = sharedNumbers();

const POLL_MS = 5;

const isSuspending = (): boolean => Atomics.load(numbers, SUSPENDING) === 1;

/** Registers a call to a writer, to be ended with `endWrite`. False: not now, the process is being suspended. */
export const beginWrite = (): boolean => {
  // Counts before reading the flag, while `holdWrites` sets the flag before reading the count: one sees the other.
  Atomics.add(numbers, CALLS, 1);
  if (!isSuspending()) return true;
  endWrite();
  return false;
};

export const endWrite = (calls = 1): void => void Atomics.sub(numbers, CALLS, calls);

let resuming: Promise<void> | undefined;

const resumed = async (): Promise<void> => {
  while (isSuspending()) await pause(POLL_MS);
  resuming = undefined;
};

/** Waiters continue in order of arrival. */
export const whenWritable = (): Promise<void> => (resuming ??= resumed());

/** Whether others are waiting already, so that later callers queue behind them. */
export const someoneWaits = (): boolean => resuming !== undefined;

/** Blocks new writes and waits for those in progress. False: they did not finish in time. */
export const holdWrites = async (withinMs: number): Promise<boolean> => {
  Atomics.store(numbers, SUSPENDING, 1);
  const end = monotonicMs() + withinMs;
  while (Atomics.load(numbers, CALLS) > 0) {
    if (monotonicMs() > end) return false;
    await pause(POLL_MS);
  }
  return true;
};

export const resumeWrites = (): void => void Atomics.store(numbers, SUSPENDING, 0);
