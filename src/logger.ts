import pino, { type DestinationStream, type Logger } from 'pino';
import { masked } from './domain/key-like';

/** The last place before a line is written: nothing that might be a key gets past it. */
const masking = (destination: DestinationStream): DestinationStream => ({
  write: (line) => destination.write(masked(line)),
});

/** Lines go to stderr: JSON for programs, readable text on a terminal. Stdout belongs to data. */
export const makeLogger = async (level: string): Promise<Logger> => {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  if (!process.stderr.isTTY) return pino(options, masking(pino.destination({ dest: 2, sync: true })));
  const { default: pretty } = await import('pino-pretty');
  const terminal = pretty({ destination: 2, sync: true, translateTime: 'SYS:HH:MM:ss.l' });
  return pino(options, masking({ write: (line) => void terminal.write(line) }));
};
