import pino, { type DestinationStream, type Logger } from 'pino';
import { isoNow } from '../async/clock';
import { masked } from '../domain/key-like';
import { REQUEST, REQUEST_FAILED } from '../http/response/access-log';
import { lineWriter } from './line-writer';

/** The last step before a line is written: masks everything that might be a key. */
const masking = (destination: DestinationStream): DestinationStream => ({
  write: (line) => destination.write(masked(line)),
});

/** Pino writes the message as the last member. */
const REQUEST_END = `"msg":"${REQUEST}"}\n`;

const WARN = 40;

/** Replaces lines that were lost because nobody read them in time. */
const lostLine = (count: number): string =>
  `${JSON.stringify({ level: WARN, time: isoNow(), lost_lines: count, msg: 'lines of this log were lost here: nobody read them in time' })}\n`;

/** Batches request lines per turn of the event loop. Any other line is written at once, after those before it. */
const batched = (fd: number): DestinationStream => {
  const stderr = masking(lineWriter(fd, lostLine));
  let lines = '';
  const flush = (): void => {
    if (lines !== '') stderr.write(lines);
    lines = '';
  };
  // Runs before the exit handler of the line writer.
  process.prependListener('exit', flush);
  return {
    write: (line) => {
      if (lines === '') setImmediate(flush);
      lines += line;
      if (!line.endsWith(REQUEST_END)) flush();
    },
  };
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

/** Logs to stderr: readable text on a TTY, otherwise NDJSON. Stdout is for data. */
export const makeLogger = (level: string, stderr: Stderr): Logger => {
  const options = { level, base: null, timestamp: () => `,"time":"${isoNow()}"` };
  if (stderr.isTTY !== true)
    return pino(options, stderr.fd === undefined ? masking(stderr) : batched(stderr.fd));
  const pretty = require('pino-pretty') as typeof import('pino-pretty');
  const terminal = pretty({ destination: stderr.fd ?? stderr, sync: true, translateTime: 'SYS:HH:MM:ss.l' });
  return pino(options, masking({ write: (line) => void terminal.write(withoutDetails(line)) }));
};
