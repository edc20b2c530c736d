import pino, { type DestinationStream, type Logger } from 'pino';
import { masked } from '../domain/texts';
import { REQUEST, REQUEST_FAILED } from '../http/middleware';
import { TIMES } from '../times';

/** While nobody reads, this much is kept; further lines are lost. */
const MAX_BYTES = 1_048_576;

/** So many bytes are written together, and what is fewer after this time: each write costs as much as many lines. */
const MIN_BYTES = 4_096;

/** Never waits for the reader. A full disk, or a reader that has left, must not end the process: errors are ignored. */
const asynchronous = (fd: number) => {
  const destination = pino.destination({
    dest: fd,
    sync: false,
    minLength: MIN_BYTES,
    maxLength: MAX_BYTES,
    periodicFlush: TIMES.outputMs,
  });
  destination.on('error', () => undefined);
  // The first time, up to MIN_BYTES may be left.
  const flush = destination.flush.bind(destination);
  return Object.assign(destination, { flush: (done: () => void): void => flush(() => flush(done)) });
};

/** Shortens a request line to what matters on a terminal. Other lines are unchanged. */
export const withoutDetails = (line: string): string => {
  const entry = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const { level, time, msg, method, route, status, ms, client_address, application_id, reason, err } = entry;
  if (msg !== REQUEST && msg !== REQUEST_FAILED) return line;
  const parts = [method, route ?? '(no route)', status, `${Math.round(Number(ms))} ms`, client_address];
  const known = [application_id, reason].filter((part) => part !== null && part !== undefined);
  return `${JSON.stringify({ level, time, msg: [...parts, ...known].join(' '), err })}\n`;
};

/** Where a log is written. Without a file descriptor, lines are written to the stream itself. */
interface Stderr extends DestinationStream {
  readonly isTTY?: boolean;
  readonly fd?: number;
}

/** Logs to stderr: readable text on a TTY, otherwise NDJSON, with all that might be a key masked. Stdout is for data. */
export const makeLogger = (level: string, stderr: Stderr): Logger => {
  const { isoTime: timestamp } = pino.stdTimeFunctions;
  const options = { level, base: null, timestamp, hooks: { streamWrite: masked } };
  if (stderr.isTTY !== true) return pino(options, stderr.fd === undefined ? stderr : asynchronous(stderr.fd));
  const pretty = require('pino-pretty') as typeof import('pino-pretty');
  const terminal = pretty({ destination: stderr.fd ?? stderr, sync: true, translateTime: 'SYS:HH:MM:ss.l' });
  return pino(options, { write: (line) => void terminal.write(withoutDetails(line)) });
};
