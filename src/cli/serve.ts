import type { Logger } from 'pino';
import { makeServer } from '../app/server';
import { readConfiguration } from '../configuration';
import { makeLogger } from '../logger';
import { welcome } from './welcome';

/** A second signal does not wait. */
const IMPATIENT_EXIT = 130;

const stopOnSignals = (logger: Logger, stop: () => Promise<void>): void => {
  let stopping = false;
  const onSignal = (signal: string): void => {
    if (stopping) process.exit(IMPATIENT_EXIT);
    stopping = true;
    logger.info({ signal }, 'stopping: finishing what is under way; a second signal ends at once');
    stop().then(
      () => {
        logger.info('stopped');
        process.exit(0);
      },
      (error: unknown) => {
        logger.error({ err: error }, 'could not stop in order');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
};

/** The whole service, until a signal ends it. */
export const serve = async (): Promise<void> => {
  const configuration = readConfiguration(process.env);
  const logger = await makeLogger(configuration.LOG_LEVEL);
  const server = makeServer(configuration, logger);
  stopOnSignals(logger, server.stop);
  const started = await server.start();
  if (started === undefined) return;
  const { app, url, key } = started;
  process.stdout.write(await welcome(app, configuration, url, key));
};
