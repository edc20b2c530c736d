import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { monotonicMs } from '../clock';

/** Writes lines without ever blocking on whoever reads them. */
export interface LineWriter {
  /** One or more whole lines. They are written now, or later in order, or counted as lost. */
  write(lines: string): void;
}

/** The most that is kept while nobody reads. */
const MAX_BYTES = 1_048_576;
const RETRY_MS = 20;
/** How long the end of the process waits for a reader that takes nothing. */
const LAST_WAIT_MS = 500;
const LAST_STEP_MS = 5;

/**
 * A descriptor of our own for the same pipe, so that only ours is non-blocking, and nobody else can change that. A file
 * never blocks its writer; a socket cannot be opened again, but Node makes it non-blocking when `process.stderr` is first
 * used.
 */
const nonBlocking = (fd: number): number => {
  if (!fstatSync(fd).isFIFO()) return fd;
  try {
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    return fd;
  }
};

const countLines = (lines: Buffer): number => {
  let count = 0;
  for (let at = lines.indexOf(10); at >= 0; at = lines.indexOf(10, at + 1)) count += 1;
  return count;
};

const sleep = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** Writes what it can, and gives the rest. A full pipe and a reader that has gone are the same: it may come back. */
const tryToWrite = (fd: number, lines: Buffer): Buffer => {
  let rest = lines;
  try {
    while (rest.length > 0) rest = rest.subarray(writeSync(fd, rest));
  } catch {
    // Tried again later.
  }
  return rest;
};

/** What could not be written yet, in order. */
const backlogFor = (fd: number) => {
  const waiting: Buffer[] = [];
  let bytes = 0;
  return {
    bytes: (): number => bytes,
    add: (lines: Buffer): void => {
      if (lines.length === 0) return;
      waiting.push(lines);
      bytes += lines.length;
    },
    /** As much as the reader takes. */
    write: (): void => {
      for (let first = waiting[0]; first !== undefined; first = waiting[0]) {
        const rest = tryToWrite(fd, first);
        bytes -= first.length - rest.length;
        if (rest.length > 0) {
          waiting[0] = rest;
          return;
        }
        waiting.shift();
      }
    },
  };
};

/**
 * `lostLine` makes the line that replaces those that were lost. What could not be written when the process
 * ends is tried for a moment more.
 */
export const lineWriter = (fd: number, lostLine: (count: number) => string): LineWriter => {
  const target = nonBlocking(fd);
  const backlog = backlogFor(target);
  let lost = 0;
  let retry: NodeJS.Timeout | undefined;

  const isBehind = (): boolean => backlog.bytes() > 0 || lost > 0;

  /** Lost lines are reported only with room for more than that: a slow reader does not get a line for every single one. */
  const tryBacklog = (): void => {
    backlog.write();
    if (lost === 0 || backlog.bytes() > MAX_BYTES / 2) return;
    backlog.add(Buffer.from(lostLine(lost)));
    lost = 0;
    backlog.write();
  };

  const tryLater = (): void => {
    retry ??= setTimeout(() => {
      retry = undefined;
      tryBacklog();
      if (isBehind()) tryLater();
    }, RETRY_MS).unref();
  };

  process.on('exit', () => {
    let since = monotonicMs();
    while (isBehind() && monotonicMs() - since < LAST_WAIT_MS) {
      const before = backlog.bytes();
      tryBacklog();
      if (backlog.bytes() !== before) since = monotonicMs();
      else sleep(LAST_STEP_MS);
    }
  });

  return {
    write: (lines) => {
      const bytes = Buffer.from(lines);
      if (lost > 0 || backlog.bytes() + bytes.length > MAX_BYTES) lost += countLines(bytes);
      else backlog.add(backlog.bytes() > 0 ? bytes : tryToWrite(target, bytes));
      if (isBehind()) tryLater();
    },
  };
};
