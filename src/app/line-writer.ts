import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { monotonicMs } from '../async/clock';

/** Writes lines without ever blocking on a slow reader. */
export interface LineWriter {
  /** Takes one or more whole lines. They are written now, or later in order, or counted as lost. */
  write(lines: string): void;
}

/** The limit of the backlog while nobody reads. */
const MAX_BYTES = 1_048_576;
const RETRY_MS = 10;
/** How long the exiting process waits for a reader that does not read. */
const EXIT_WAIT_MS = 500;

/**
 * Reopens a pipe, because O_NONBLOCK on a shared open file description would affect other processes, and they could clear
 * it. A file never blocks its writer. A socket cannot be reopened, but Node makes it non-blocking when `process.stderr`
 * is first used.
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

/** Writes what it can and returns the rest. A missing reader is treated like a full pipe: it may come back. */
const tryToWrite = (fd: number, lines: Buffer): Buffer => {
  let rest = lines;
  try {
    while (rest.length > 0) rest = rest.subarray(writeSync(fd, rest));
  } catch {
    // Retried later.
  }
  return rest;
};

/** The lines that could not be written yet, in order. */
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
    /** Writes as much as the reader takes. */
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
 * `lostLine` returns the line that replaces lost ones. When the process exits, the backlog is retried a little longer.
 * Pino's asynchronous destination cannot replace this: at exit it loses the chunk that is being written, or writes it out
 * of order, and waits for ever for a reader that does not read; and it stops for good when a reader is missing once.
 */
export const lineWriter = (fd: number, lostLine: (count: number) => string): LineWriter => {
  const target = nonBlocking(fd);
  const backlog = backlogFor(target);
  let lost = 0;
  let retry: NodeJS.Timeout | undefined;

  const isBehind = (): boolean => backlog.bytes() > 0 || lost > 0;

  /** Reports lost lines only once half of the backlog is free, so that a slow reader does not get one report each. */
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
    let progressAt = monotonicMs();
    while (isBehind() && monotonicMs() - progressAt < EXIT_WAIT_MS) {
      const before = backlog.bytes();
      tryBacklog();
      if (backlog.bytes() !== before) progressAt = monotonicMs();
      else sleep(RETRY_MS);
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
