import { openApp, type App } from '../app/app';
import { storeOf } from '../app/log-address';
import { pause } from '../clock';
import { readConfiguration, type Configuration } from '../configuration';
import { openToOthers } from '../app/data-folder';
import { compileTenantSchemas } from '../event-log/codec';
import type { Position } from '../event-log/event-log';
import { api } from '../http/api';
import type { StartProgress } from '../http/api-context';
import { signedCursors } from '../http/routes/cursor';
import { headerNames } from '../http/answer/header-names';
import { openListener, type Listener } from '../http/listener';
import { operations } from '../http/operations';
import { readPolicies } from '../limits/policies';
import { rateLimits, type RateLimits } from '../limits/rate-limits';
import { readTrustedProxies } from '../limits/trusted-proxies';
import { codeOf } from '../fault';
import { makeLogger } from '../logger';
import { parkedNotices } from '../app/parked-notices';
import { projectingThreads } from '../app/projecting-workers';
import { remembering } from '../read-models/remembering';
import { ledgerStatus, lookBriefly } from '../app/status';
import { programVersion } from '../version';
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

const LONGEST_LOOK_MS = 1_000;
const CATCH_UP_SLICE_MS = 250;

const openLimits = ({ RATE_LIMITS }: Configuration, logger: Logger): RateLimits =>
  rateLimits(readPolicies(RATE_LIMITS) ?? [], {
    warn: (what, error) => logger.warn({ err: error }, what),
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
  const { ledger, projecting } = app;
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
      const looking = projecting.upToDate();
      // A store that does not answer must not hold up what can be answered without it.
      if (looking !== undefined) await Promise.race([looking, pause(LONGEST_LOOK_MS)]);
    },
    reached: projecting.reached,
    isParked: projecting.isParked,
    isReady,
    mustBeWhole: app.watch.mustBeWhole,
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

/** It is open before there is an app: whoever looks after the process can see that it lives, and what it waits for. */
const openOperations = (
  configuration: Configuration,
  life: Life,
  limits: RateLimits,
  opened: () => App | undefined,
): Promise<Listener> => {
  const { OPS_HOST: host, OPS_PORT: port, PUBLIC_URL: publicUrl } = configuration;
  const traceHeader = headerNames(configuration.HEADER_PREFIX).traceId;
  const look = lookBriefly();
  const listener = operations({
    phase: () => life.phase,
    waitingFor: () => (opened() === undefined ? `the event log ${storeOf(configuration)}` : undefined),
    status: async () => {
      const app = opened() as App;
      await app.mustBeWritable();
      return ledgerStatus(app, look);
    },
    setBack: () => opened()?.watch.setBack(),
    limits: limits.status,
  });
  return openListener(listener, { host, port, publicUrl, traceHeader });
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

/** Good news has no error; what stops everything is more than a warning. */
const reporter =
  (logger: Logger) =>
  (what: string, error?: unknown): void => {
    if (error === undefined) logger.info(what);
    else logger[codeOf(error) === 'log_set_back' ? 'error' : 'warn']({ err: error }, what);
  };

/** The whole service, until a signal ends it. */
export const serve = async (): Promise<void> => {
  const configuration = readConfiguration(process.env);
  const logger = await makeLogger(configuration.LOG_LEVEL);
  const report = reporter(logger);
  const limits = openLimits(configuration, logger);
  const notices = parkedNotices(logger);
  const life: Life = { phase: 'starting', wasReady: false, progress: { events_done: 0, events_total: 0 } };
  const listeners: Listener[] = [];
  let app: App | undefined;

  const stop = async (): Promise<void> => {
    life.phase = 'stopping';
    const withinMs = configuration.SHUTDOWN_SECONDS * 1_000;
    await Promise.all(listeners.map((listener) => listener.close(withinMs)));
    await app?.close();
    notices.close();
  };

  /** What troubles a projecting thread may be the log: then this thread wants to know at once. */
  const onProjecting = (what: string, error: unknown): void => {
    report(what, error);
    void app?.watch.look();
  };

  const start = async (): Promise<void> => {
    const ops = await openOperations(configuration, life, limits, () => app);
    listeners.push(ops);
    onSignals(logger, stop);
    const elsewhere = projectingThreads(configuration, onProjecting, notices.parked);
    const compiling = compileTenantSchemas();
    const opened = await openApp(configuration, report, elsewhere);
    await compiling;
    app = opened;
    notices.watch(opened.ledger.unreadable);
    const exposed = openToOthers(configuration.DATA_DIR);
    if (exposed !== undefined) logger.warn(exposed);
    const public_ = await openApi({ app: opened, configuration, logger, life, limits });
    listeners.push(public_);
    opened.watch.start();
    await opened.projecting.start();
    const key = await firstKey(opened, configuration);
    await caughtUp(opened, life);
    if (life.phase === 'stopping') return;
    Object.assign(life, { phase: 'ready', wasReady: true });
    const urls = { url: public_.url, operations: ops.url };
    logger.info({ ...urls, version: programVersion(), store: opened.store }, 'ready');
    process.stdout.write(await welcome(opened, configuration, public_.url, key));
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
