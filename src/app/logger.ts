import pino, { type DestinationStream, type Logger } from 'pino';
import { isoNow } from '../clock';
import { masked } from '../domain/key-like';
import { REQUEST, REQUEST_FAILED } from '../http/answer/access-log';
import { lineWriter } from './line-writer';

/** The last step before a line is written: masks everything that might be a key. */
const masking = (destination: DestinationStream): DestinationStream => ({
  write: (line) => destination.write(masked(line)),
});

/** Pino writes the message as the last member. */
const REQUEST_END = `"msg":"${REQUEST}"}\n`;

const STDERR = 2;
const WARN = 40;

/** Replaces lines that were lost because nobody read them in time. */
const lostLine = (count: number): string =>
  `${JSON.stringify({ level: WARN, time: isoNow(), lost_lines: count, msg: 'lines of this log were lost here: nobody read them in time' })}\n`;

/** Batches request lines per turn of the event loop. Any other line is written at once, after those before it. */
const batchedStderr = (): DestinationStream => {
  const stderr = masking(lineWriter(STDERR, lostLine));
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

/** Logs to stderr: readable text on a TTY, otherwise NDJSON. Stdout is for data. */
export const makeLogger = async (level: string): Promise<Logger> => {
  const options = { level, base: null, timestamp: () => `,"time":"${isoNow()}"` };
  if (!process.stderr.isTTY) return pino(options, batchedStderr());
  const { default: pretty } = await import('pino-pretty');
  const terminal = pretty({ destination: 2, sync: true, translateTime: 'SYS:HH:MM:ss.l' });
  return pino(options, masking({ write: (line) => void terminal.write(withoutDetails(line)) }));
};
