import pino, { type DestinationStream, type Logger } from 'pino';
import { isoNow } from './clock';

/** What the line about a request says. */
export const REQUEST = 'request';

/** Lines about requests of one turn of the event loop are written together; every other line at once, in its order. */
const stderrByTurns = (): DestinationStream => {
  const stderr = pino.destination({ dest: 2, sync: true });
  let lines = '';
  const flush = (): void => {
    if (lines !== '') stderr.write(lines);
    lines = '';
  };
  process.on('exit', flush);
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
  return pino(options, pretty({ destination: 2, sync: true, translateTime: 'SYS:HH:MM:ss.l' }));
};
