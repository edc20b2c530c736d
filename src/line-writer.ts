import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { monotonicMs } from './clock';

/** Writes lines without ever waiting for whoever reads them. */
export interface LineWriter {
  /** One or more whole lines. They are written now, or later in order, or counted as lost. */
  write(lines: string): void;
}

/** So much is kept while nobody reads. */
const MOST_BYTES = 1_048_576;
const RETRY_MS = 20;
/** How long the end of the process waits for a reader that takes nothing. */
const LAST_WAIT_MS = 500;
const LAST_STEP_MS = 5;

/**
 * A descriptor of our own for the same pipe, so that not waiting is set for us alone, and nobody else can unset it. A
 * file never makes its writer wait; a socket cannot be opened again, but Node has set it not to wait when `process.stderr`
 * was looked at.
 */
const withoutWaiting = (fd: number): number => {
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

/**
 * `lostLine` makes the line that stands in the place of those that were lost. What could not be written when the process
 * ends is tried for a moment more.
 */
export const lineWriter = (fd: number, lostLine: (count: number) => string): LineWriter => {
  const target = withoutWaiting(fd);
  const backlog: Buffer[] = [];
  let backlogBytes = 0;
  let lost = 0;
  let retry: NodeJS.Timeout | undefined;

  const keep = (lines: Buffer): void => {
    backlog.push(lines);
    backlogBytes += lines.length;
  };

  /** Writes what it can, and gives the rest. A full pipe and a reader that has gone are the same: it may come back. */
  const tryToWrite = (lines: Buffer): Buffer => {
    let rest = lines;
    try {
      while (rest.length > 0) rest = rest.subarray(writeSync(target, rest));
    } catch {
      // Tried again later.
    }
    return rest;
  };

  const writeBacklog = (): void => {
    for (let first = backlog[0]; first !== undefined; first = backlog[0]) {
      const rest = tryToWrite(first);
      backlogBytes -= first.length - rest.length;
      if (rest.length > 0) {
        backlog[0] = rest;
        return;
      }
      backlog.shift();
    }
  };

  /** With room for more than the next line: a slow reader is not told of every single loss. */
  const reportLost = (): void => {
    if (lost === 0 || backlogBytes > MOST_BYTES / 2) return;
    keep(Buffer.from(lostLine(lost)));
    lost = 0;
    writeBacklog();
  };

  const isBehind = (): boolean => backlog.length > 0 || lost > 0;

  const tryAgain = (): void => {
    retry = undefined;
    writeBacklog();
    reportLost();
    if (isBehind()) tryLater();
  };

  const tryLater = (): void => {
    retry ??= setTimeout(tryAgain, RETRY_MS).unref();
  };

  process.on('exit', () => {
    let since = monotonicMs();
    while (isBehind() && monotonicMs() - since < LAST_WAIT_MS) {
      const before = backlogBytes;
      writeBacklog();
      reportLost();
      if (backlogBytes !== before) since = monotonicMs();
      else sleep(LAST_STEP_MS);
    }
  });

  return {
    write: (lines) => {
      const bytes = Buffer.from(lines);
      if (lost > 0 || backlogBytes + bytes.length > MOST_BYTES) lost += countLines(bytes);
      else if (backlog.length > 0) keep(bytes);
      else {
        const rest = tryToWrite(bytes);
        if (rest.length > 0) keep(rest);
      }
      if (isBehind()) tryLater();
    },
  };
};
