import pino, { type Logger } from 'pino';

/** Lines go to stderr: JSON for programs, readable text on a terminal. Stdout belongs to data. */
export const makeLogger = async (level: string): Promise<Logger> => {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  if (!process.stderr.isTTY) return pino(options, pino.destination({ dest: 2, sync: true }));
  const { default: pretty } = await import('pino-pretty');
  return pino(options, pretty({ destination: 2, sync: true, translateTime: 'SYS:HH:MM:ss.l' }));
};
