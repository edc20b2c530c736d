import pino, { type DestinationStream, type Logger } from 'pino';
import { isoNow } from './clock';
import { masked } from './domain/key-like';
import { lineWriter } from './line-writer';

/** What the line about a request says. */
export const REQUEST = 'request';

/** The last place before a line is written: nothing that might be a key gets past it. */
const masking = (destination: DestinationStream): DestinationStream => ({
  write: (line) => destination.write(masked(line)),
});

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
  const stream = {
    // Asks pino to tell `lastMsg`.
    [pino.symbols.needsMetadataGsym]: true,
    lastMsg: '',
    write: (line: string): void => {
      if (lines === '') setImmediate(flush);
      lines += line;
      if (stream.lastMsg !== REQUEST) flush();
    },
  };
  return stream;
};

/** Lines go to stderr: JSON for programs, readable text on a terminal. Stdout belongs to data. */
export const makeLogger = async (level: string): Promise<Logger> => {
  const options = { level, base: null, timestamp: () => `,"time":"${isoNow()}"` };
  if (!process.stderr.isTTY) return pino(options, stderrByTurns());
  const { default: pretty } = await import('pino-pretty');
  const terminal = pretty({ destination: 2, sync: true, translateTime: 'SYS:HH:MM:ss.l' });
  return pino(options, masking({ write: (line) => void terminal.write(line) }));
};
