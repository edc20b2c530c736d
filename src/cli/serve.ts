import { keyCheck } from '../access/key-check';
import { openApp, programVersion, type App } from '../app';
import { readConfiguration, type Configuration } from '../configuration';
import type { Position } from '../event-log/event-log';
import { api } from '../http/api';
import type { StartProgress } from '../http/api-context';
import { signedCursors } from '../http/cursor';
import { headerNames } from '../http/header-names';
import { openListener, type Listener } from '../http/listener';
import { operations } from '../http/operations';
import { readPolicies } from '../limits/policies';
import { rateLimits, type RateLimits } from '../limits/rate-limits';
import { readTrustedProxies } from '../limits/trusted-proxies';
import { makeLogger } from '../logger';
import { parkedNotices } from '../parked-notices';
import { projectingThreads } from '../projecting-threads';
import { remembering } from '../read-models/remembering';
import { ledgerStatus, type LedgerStatus } from '../status';
import { firstKey, welcome } from './welcome';

type Phase = 'starting' | 'ready' | 'stopping';

/** Where the process is, and whether it was ever ready: what stops before that answers no read either. */
interface Life {
  phase: Phase;
  wasReady: boolean;
  progress: StartProgress;
}
type Logger = Awaited<ReturnType<typeof makeLogger>>;

/** A second signal does not wait. */
const IMPATIENT_EXIT = 130;

const CATCH_UP_SLICE_MS = 250;

const openLimits = ({ RATE_LIMITS }: Configuration, logger: Logger): RateLimits =>
  rateLimits(readPolicies(RATE_LIMITS) ?? [], {
    onTrouble: (what, error) => logger.warn({ err: error }, what),
  });

interface ApiWish {
  readonly app: App;
  readonly configuration: Configuration;
  readonly logger: Logger;
  readonly life: Life;
  readonly limits: RateLimits;
}

const openApi = ({ app, configuration, logger, life, limits }: ApiWish): Promise<Listener> => {
  const { HOST: host, PORT: port, PUBLIC_URL: publicUrl, BODY_LIMIT: bodyLimit } = configuration;
  const headers = headerNames(configuration.HEADER_PREFIX);
  const { log, streams, ledger, projecting } = app;
  const isReady = () => life.wasReady;
  const readers = remembering(projecting.reader);
  const koa = api({
    headers,
    publicUrl,
    bodyLimit,
    version: programVersion(),
    logger,
    limits,
    trustedProxies: readTrustedProxies(configuration.TRUSTED_PROXIES) ?? { kind: 'none' },
    ledger,
    access: app.access,
    keyUses: app.keyUses,
    cursors: signedCursors(app.secret),
    ...readers,
    upToDate: async () => {
      await readers.upToDate();
      await projecting.upToDate();
    },
    reached: projecting.reached,
    isParked: projecting.isParked,
    isReady,
    keys: keyCheck({
      log,
      streams,
      ledger,
      isReady,
      applications: () => projecting.reader('applications'),
      withoutLogMs: configuration.READS_WITHOUT_LOG_SECONDS * 1_000,
    }),
    startProgress: () => life.progress,
    isOpen: () => life.phase !== 'stopping',
  });
  const handle = koa.callback();
  return openListener((request, response) => void handle(request, response), {
    host,
    port,
    publicUrl,
    traceHeader: headers.traceId,
    onRefused: (code, traceId) => logger.info({ trace_id: traceId, code }, 'refused before it was a request'),
  });
};

const openOperations = ({ app, configuration, life, limits }: ApiWish): Promise<Listener> => {
  const { OPS_HOST: host, OPS_PORT: port, PUBLIC_URL: publicUrl } = configuration;
  const traceHeader = headerNames(configuration.HEADER_PREFIX).traceId;
  const status = async (): Promise<LedgerStatus> => {
    await app.mustBeWritable();
    return ledgerStatus(app);
  };
  const parts = { phase: () => life.phase, status, limits: limits.status };
  return openListener(operations(parts), {
    host,
    port,
    publicUrl,
    traceHeader,
  });
};

/** How far the read model is that is furthest behind. */
const progressTo = async ({ log, projecting }: App, head: Position): Promise<StartProgress> => {
  const controls = await Promise.all(projecting.live.map(({ generation }) => generation.control()));
  const [slowest = ''] = controls.map(({ applied = '' }) => applied).toSorted();
  const total = await log.distance(undefined, head);
  const done = slowest === '' ? 0 : await log.distance(undefined, slowest);
  return { events_done: Math.min(done, total), events_total: total };
};

/** Waits until the read models show the head that was there at the start: no read is answered before. */
const caughtUp = async (app: App, life: Life): Promise<void> => {
  const head = await app.log.head();
  while (head !== undefined && life.phase !== 'stopping') {
    life.progress = await progressTo(app, head.position);
    if (await app.projecting.reached(head.position, CATCH_UP_SLICE_MS)) return;
    app.mustHaveRoom();
  }
};

/** The whole service, until a signal ends it. */
export const serve = async (): Promise<void> => {
  const configuration = readConfiguration(process.env);
  const logger = await makeLogger(configuration.LOG_LEVEL);
  const onTrouble = (what: string, error: unknown): void => logger.warn({ err: error }, what);
  const notices = parkedNotices(logger);
  const elsewhere = projectingThreads(configuration, onTrouble, notices.parked);
  const app = await openApp(configuration, onTrouble, elsewhere);
  notices.watch(app.ledger.unreadable);
  const life: Life = { phase: 'starting', wasReady: false, progress: { events_done: 0, events_total: 0 } };
  const listeners: Listener[] = [];

  const stop = async (): Promise<void> => {
    life.phase = 'stopping';
    const withinMs = configuration.SHUTDOWN_SECONDS * 1_000;
    await Promise.all(listeners.map((listener) => listener.close(withinMs)));
    await app.close();
    notices.close();
  };

  const start = async (): Promise<void> => {
    const wish = { app, configuration, logger, life, limits: openLimits(configuration, logger) };
    listeners.push(await openApi(wish));
    listeners.push(await openOperations(wish));
    const [public_, ops] = listeners as [Listener, Listener];
    onSignals(logger, stop);

    await app.projecting.start();
    const key = await firstKey(app, configuration);
    await caughtUp(app, life);
    if (life.phase === 'stopping') return;
    Object.assign(life, { phase: 'ready', wasReady: true });
    logger.info({ url: public_.url, operations: ops.url, version: programVersion() }, 'ready');
    const { apiKey } = headerNames(configuration.HEADER_PREFIX);
    process.stdout.write(await welcome(app, public_.url, apiKey, key));
  };

  try {
    await start();
  } catch (error) {
    if (life.phase === 'stopping') return;
    await stop();
    throw error;
  }
};

const onSignals = (logger: Logger, stop: () => Promise<void>): void => {
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
