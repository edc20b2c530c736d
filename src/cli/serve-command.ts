import { Command } from 'commander';
import type { Logger } from 'pino';
import { readConfiguration, settingNames, settings } from '../configuration';
import { welcome } from './welcome';

/** The exit code after a second signal, which skips the graceful shutdown. */
const FORCED_EXIT = 130;

const stopOnSignals = (logger: Logger, stop: () => Promise<void>): void => {
  let isStopping = false;
  const onSignal = (signal: string): void => {
    if (isStopping) process.exit(FORCED_EXIT);
    isStopping = true;
    logger.info({ signal }, 'stopping: finishing requests in progress; a second signal exits at once');
    stop().then(
      () => {
        logger.info('stopped');
        process.exit(0);
      },
      (error: unknown) => {
        logger.error({ err: error }, 'could not shut down gracefully');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
};

/** Loads the server only here: otherwise the help of all commands would take twice as long. */
const serve = async (): Promise<void> => {
  const configuration = readConfiguration(process.env);
  const logger = await (await import('../app/logger.js')).makeLogger(configuration.LOG_LEVEL);
  const server = (await import('../app/server.js')).makeServer(configuration, logger);
  stopOnSignals(logger, server.stop);
  const started = await server.start();
  if (started === undefined) return;
  const { app, url, key } = started;
  process.stdout.write(await welcome(app, configuration, url, key));
};

const settingsHelp = (): string => {
  const width = Math.max(...settingNames.map((name) => name.length)) + 2;
  const rows = settingNames.map((name) => {
    const { meaning, fallback } = settings[name];
    return `  ${name.padEnd(width)}${meaning}${fallback === '' ? '' : ` Default: ${fallback}.`}`;
  });
  return `\nEnvironment:\n${rows.join('\n')}\n`;
};

export const serveCommand = (): Command =>
  new Command('serve')
    .description('serve the API and the operations listener until SIGTERM or SIGINT')
    .addHelpText('after', settingsHelp())
    .action(serve);
