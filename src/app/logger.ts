import pino, { type DestinationStream, type Logger } from 'pino';
import { isoNow } from '../clock';
import { masked } from '../domain/key-like';
import { REQUEST, REQUEST_FAILED } from '../http/answer/access-log';
import { lineWriter } from './line-writer';

/** The last place before a line is written: nothing that might be a key gets past it. */
const masking = (destination: DestinationStream): DestinationStream => ({
  write: (line) => destination.write(masked(line)),
});

/** The message is the last member of a line. */
const REQUEST_END = `"msg":"${REQUEST}"}\n`;

const STDERR = 2;
const WARN = 40;

/** In the place of lines that could not be written because nobody read them. */
const lostLine = (count: number): string =>
  `${JSON.stringify({ level: WARN, time: isoNow(), lost_lines: count, msg: 'lines of this log were lost here: nobody read them in time' })}\n`;

/** Lines about requests of one turn of the event loop are written together; every other line at once, in its order. */
const stderrByTurns = (): DestinationStream => {
  const stderr = masking(lineWriter(STDERR, lostLine));
  let lines = '';
  const flush = (): void => {
    if (lines !== '') stderr.write(lines);
    lines = '';
  };
  // Before the writer's own last attempt.
  process.prependListener('exit', flush);
  return {
    write: (line) => {
      if (lines === '') setImmediate(flush);
      lines += line;
      if (!line.endsWith(REQUEST_END)) flush();
    },
  };
};

/** What a person at a terminal wants to see of a request, instead of a list of its members; other lines as they are. */
export const withoutDetails = (line: string): string => {
  const entry = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const { level, time, msg, method, route, status, ms, client_address, application_id, reason, err } = entry;
  if (msg !== REQUEST && msg !== REQUEST_FAILED) return line;
  const parts = [method, route ?? '(no route)', status, `${Math.round(Number(ms))} ms`, client_address];
  const known = [application_id, reason].filter((part) => part !== null && part !== undefined);
  return `${JSON.stringify({ level, time, msg: [...parts, ...known].join(' '), err })}\n`;
};

/** Lines go to stderr: JSON for programs, readable text on a terminal. Stdout belongs to data. */
export const makeLogger = async (level: string): Promise<Logger> => {
  const options = { level, base: null, timestamp: () => `,"time":"${isoNow()}"` };
  if (!process.stderr.isTTY) return pino(options, stderrByTurns());
  const { default: pretty } = await import('pino-pretty');
  const terminal = pretty({ destination: 2, sync: true, translateTime: 'SYS:HH:MM:ss.l' });
  return pino(options, masking({ write: (line) => void terminal.write(withoutDetails(line)) }));
};
