import { Command } from 'commander';
import type { Logger } from 'pino';
import type { Started } from '../app/server';
import { orUndefined } from '../async/clock';
import { readConfiguration, settingNames, settings, type Configuration } from '../configuration';
import { codeOf, type Fault } from '../fault';
import { TIMES } from '../times';
import { FAILED, LOG_SET_BACK } from './failure';
import type { Io } from './io';

/** The exit code after a second signal, which skips the graceful shutdown. */
const FORCED_EXIT = 130;

/** Nothing but SIGKILL ends a process that has begun to write to a reader that does not read. */
const exit = (io: Io, logger: Logger, code: number): void => {
  const kill = setTimeout(() => process.kill(process.pid, 'SIGKILL'), TIMES.lastMs);
  logger.flush(() => {
    clearTimeout(kill);
    io.exit(code);
  });
};

const stopOnSignals = (io: Io, logger: Logger, stop: () => Promise<void>): void => {
  let isStopping = false;
  const onSignal = (signal: string): void => {
    if (isStopping) return exit(io, logger, FORCED_EXIT);
    isStopping = true;
    logger.info({ signal }, 'stopping: finishing requests in progress; a second signal exits at once');
    stop().then(
      () => {
        logger.info('stopped');
        exit(io, logger, 0);
      },
      (error: unknown) => {
        logger.error({ err: error }, 'could not shut down gracefully');
        exit(io, logger, 1);
      },
    );
  };
  io.on('SIGTERM', onSignal);
  io.on('SIGINT', onSignal);
  io.on('SIGTSTP', () => logger.warn('not suspended: others may need what it has locked; Ctrl-C stops it'));
};

/** After the death of a thread nothing can be finished: requests in progress end as if the process were killed. */
const endBecause =
  (io: Io, logger: Logger, stop: (reason: Fault) => Promise<void>) =>
  (reason: Error): void => {
    const isLost = codeOf(reason) === 'log_set_back';
    const code = isLost ? LOG_SET_BACK : FAILED;
    const why = isLost ? reason.message : `A thread of the service died: ${reason.message}`;
    logger.fatal({ err: reason, exit_code: code }, why);
    const stopped = isLost ? orUndefined(stop(reason as Fault), TIMES.waitMs) : Promise.resolve();
    void stopped.then(() => exit(io, logger, code));
  };

/** How to use the server. There is a key if this start created a tenant. */
const welcome = ({ HEADER_PREFIX, PORTAL }: Configuration, { url, key }: Started): string => {
  const portal = PORTAL ? `Web console: ${url}/portal\n` : '';
  if (key === undefined) return `\ntenant-ledger serves ${url}\n${portal}\n`;
  const withKey = `-H '${HEADER_PREFIX}-API-KEY: ${key}'`;
  return `
tenant-ledger serves ${url}
API key (shown once, keep it): ${key}
${portal}
  curl -s ${url}/tenants/self ${withKey}
  curl -s -X PUT ${url}/tenants/self ${withKey} -H 'Content-Type: application/json' -d '{"name":"My first tenant"}'
  curl -s '${url}/logs?size=5' ${withKey}

`;
};

/** Loads the server only here: otherwise the help of all commands would take twice as long. */
const serve = (io: Io) => async (): Promise<void> => {
  const configuration = readConfiguration(io.env);
  const { makeLogger } = require('../app/logger') as typeof import('../app/logger');
  const { makeServer } = require('../app/server') as typeof import('../app/server');
  const logger = makeLogger(configuration.LOG_LEVEL, io.stderr);
  const end = endBecause(io, logger, (reason) => server.stop(reason));
  const server = makeServer(configuration, logger, end, io.times);
  stopOnSignals(io, logger, () => server.stop());
  const started = await server.start();
  if (started === undefined) return;
  io.stdout.write(welcome(configuration, started));
};

const settingsHelp = (): string => {
  const width = Math.max(...settingNames.map((name) => name.length)) + 2;
  const rows = settingNames.map((name) => {
    const { meaning, fallback } = settings[name];
    return `  ${name.padEnd(width)}${meaning}${fallback === '' ? '' : ` Default: ${fallback}.`}`;
  });
  return `\nEnvironment:\n${rows.join('\n')}\n`;
};

export const serveCommand = (io: Io): Command =>
  new Command('serve')
    .description('serve the API and the operations listener until SIGTERM or SIGINT')
    .addHelpText('after', settingsHelp())
    .action(serve(io));
