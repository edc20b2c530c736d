import type { Logger } from 'pino';
import { keyUseRecord, type KeyUseRecord } from '../access/key-use-record';
import { eventSource } from '../audit/event-source';
import { BACKGROUND_MS, pause } from '../async/clock';
import { errorOf } from '../async/thread';
import { readOrigins, type Configuration, headerNames } from '../configuration';
import { compileEventSchemas } from '../event-log/codec';
import { appendToEnd } from '../event-log/append-to-end';
import type { Position } from '../event-log/event-log';
import { codeOf, fault, type Fault } from '../fault';
import { api } from '../http/api';
import type { ApiDependencies } from '../http/context';
import { operations } from '../http/operations';
import { openListener, type Listener } from '../http/server';
import { readPolicies } from '../limits/policies';
import { mongoLimiter, rateLimits, type RateLimits } from '../limits/rate-limits';
import { portalFiles } from '../portal/files';
import { portal } from '../portal/portal';
import type { KnownLiveSet } from '../projecting/live-set';
import { TIMES, type Times } from '../times';
import { programVersion } from '../version';
import type { Report, Serving } from './adapters';
import { openApp, type App } from './app';
import { backupAgeSeconds } from './backups';
import { firstKey } from './demo';
import { readModelStoreOf, storeOf } from './log-address';
import { makeMetrics, type Metrics } from './metrics';
import { workerThread, type WorkerReport, type WorkerThread } from './worker-thread';
import { reporter } from './reporter';
import { ledgerStatus } from './status';

/** Most starts take less. After this, requests are answered while the read models are not up to date yet. */
const START_MS = 5_000;

interface Running {
  readonly configuration: Configuration;
  readonly times: Times;
  readonly logger: Logger;
  readonly listeners: Listener[];
  /** Ends event streams, which otherwise last until the client disconnects. */
  readonly stopping: AbortController;
  readonly metrics: Metrics;
  worker?: WorkerThread;
  app?: App;
  keyUses?: KeyUseRecord;
  limits?: RateLimits;
  phase: 'starting' | 'ready' | 'stopping';
  /** The read models have shown what was in the log at the start. No read of them is answered before. */
  isCaughtUp: boolean;
  /** Called if the log is certain to be rolled back, or a thread died. */
  readonly mustEnd: (reason: Error) => void;
  /** How much of the log a first build has read, from 0 to 1. Not in events: their number is the operator's business. */
  building: number;
}

const acceptFailures = (logger: Logger) => {
  const report = reporter(logger);
  return (error: Error): void =>
    report(
      'A connection could not be accepted. If file descriptors ran out, raise the limit of open files.',
      error,
    );
};

/** Each costs some memory. A lower limit of open files holds as well. */
const MAX_CONNECTIONS = 10_000;
/** For a probe, a scraper and a few operators. */
const MAX_OPERATIONS_CONNECTIONS = 32;

/** Read models that were set back by a power loss must not answer before they have caught up. */
const readModelsOf = (
  server: Running,
  { live }: App,
): Pick<KnownLiveSet, 'read' | 'reached' | 'mayPark'> => ({
  ...live,
  read: async () => {
    if (server.isCaughtUp) return live.read();
    throw fault('read_models_unavailable', 'The read models have not caught up with the event log yet.', {
      progress: { percent: Math.floor(100 * server.building) },
    });
  },
});

const openLimits = async (server: Running, mongo: Serving['mongo']): Promise<RateLimits> => {
  const { configuration, times, logger } = server;
  server.limits = rateLimits(readPolicies(configuration.RATE_LIMITS) ?? [], {
    shared: await mongo?.run(mongoLimiter(mongo.db)),
    sharedWithinMs: times.sharedCountersMs,
    report: reporter(logger),
  });
  return server.limits;
};

const settingsOf = (configuration: Configuration): ApiDependencies['settings'] => ({
  headers: headerNames(configuration.HEADER_PREFIX),
  publicUrl: configuration.PUBLIC_URL,
  corsOrigins: readOrigins(configuration.CORS_ORIGINS) ?? [],
  recordsClients: configuration.RECORD_CLIENTS,
  trustedProxies: configuration.TRUSTED_PROXIES,
  version: programVersion(),
});

const recordKeyUses = (server: Running, { log, streams }: App): KeyUseRecord => {
  const { configuration, logger } = server;
  server.keyUses = keyUseRecord({
    append: (tenantId, events) => appendToEnd(log, streams.activity(tenantId), events, BACKGROUND_MS),
    warn: reporter(logger),
    recordsClients: configuration.RECORD_CLIENTS,
    collectMs: server.times.keyUsesMs,
  });
  return server.keyUses;
};

const apiDependencies = async (server: Running, app: App): Promise<ApiDependencies> => {
  const { secret, mongo } = await app.openServing();
  const { configuration, logger } = server;
  const { ledger } = app;
  const keyUses = recordKeyUses(server, app);
  const settings = settingsOf(configuration);
  return {
    settings,
    portal: configuration.PORTAL
      ? portal({ secret, files: portalFiles(), settings, keys: { ledger, keyUses } })
      : undefined,
    ledger,
    readModels: readModelsOf(server, app),
    events: eventSource(app, server.stopping.signal),
    keyUses,
    limits: await openLimits(server, mongo),
    logger,
    metrics: server.metrics.requests,
  };
};

const openApi = async (server: Running, app: App): Promise<Listener> => {
  const { configuration, logger } = server;
  const dependencies = await apiDependencies(server, app);
  const { HOST: host, PORT: port } = configuration;
  const handle = api(dependencies).callback();
  return openListener((request, response) => void handle(request, response), {
    host,
    port,
    onError: acceptFailures(logger),
    maxConnections: MAX_CONNECTIONS,
  });
};

/** The stores that a start may have to wait for. */
const storesOf = (configuration: Configuration): string => {
  const log = `the event log ${storeOf(configuration)}`;
  if (configuration.MONGODB_URL === '') return log;
  return `${log} and the read models ${readModelStoreOf(configuration)}`;
};

const noReadModels = (): Error =>
  fault(
    'read_models_unavailable',
    'The read models are gone. Restart the service, or run: tenant-ledger projections rebuild',
  );

/** Opened before the app, so that health checks can tell that the process is alive and what it waits for. */
const openOperations = (server: Running): Promise<Listener> => {
  const { configuration } = server;
  const { OPS_HOST: host, OPS_PORT: port } = configuration;
  const listener = operations({
    phase: () => server.phase,
    waitingFor: () => (server.app === undefined ? storesOf(configuration) : undefined),
    status: async () => {
      const app = server.app as App;
      app.watch.mustBeWritable();
      const status = await ledgerStatus(app);
      if (server.phase === 'ready' && status.read_models.set === null) throw noReadModels();
      return status;
    },
    limits: () => server.limits?.status(),
    metrics: server.metrics,
  });
  const onError = acceptFailures(server.logger);
  const maxConnections = MAX_OPERATIONS_CONNECTIONS;
  return openListener(listener, { host, port, onError, maxConnections });
};

const onReport = (server: Running, report: Report, message: WorkerReport): void => {
  switch (message.type) {
    case 'shown':
      return server.app?.live.moved(message.shown);
    case 'building':
      server.building = message.progress;
      return;
    case 'parked': {
      const { tenant_id, event_id, reason } = message.tenant;
      return report(`Tenant ${tenant_id} is parked at event ${event_id}.`, new Error(reason));
    }
    case 'error': {
      const error = errorOf(message.failure);
      report(message.what, error);
      if (codeOf(error) === 'log_set_back') server.app?.watch.lose(error as Fault);
    }
  }
};

const openAppOf = async (server: Running): Promise<App> => {
  const { configuration, logger } = server;
  const report = reporter(logger);
  const compiling = compileEventSchemas();
  server.worker = workerThread(configuration, (message) => onReport(server, report, message), server.mustEnd);
  const app = await openApp(configuration, report, {
    worker: server.worker,
    measured: server.metrics.measured,
    onLost: server.mustEnd,
    times: server.times,
  });
  await compiling;
  server.app = app;
  return app;
};

/** Whether there are read models, and they show a position. */
const isShown = async ({ live }: App, position: Position): Promise<boolean> =>
  (await live.reached(position, CATCH_UP_SLICE_MS)) &&
  live.read().then(
    () => true,
    () => false,
  );

/** Waits until the read models show what the log had at the start. */
const catchUp = async (server: Running, app: App, position: Position): Promise<void> => {
  while (!server.isCaughtUp && server.phase !== 'stopping') {
    server.isCaughtUp = await isShown(app, position);
    if (server.isCaughtUp) break;
    app.mustHaveRoom();
    await pause(CATCH_UP_LOOK_MS, server.stopping.signal);
  }
};

const CATCH_UP_SLICE_MS = 250;
/** Who waits for a position that is late is answered at once, so that asking again at once would use a whole core. */
const CATCH_UP_LOOK_MS = 20;

/** The result of a successful start: the read models are up to date and requests are answered. */
export interface Started {
  readonly url: string;
  /** A key of the tenant that a first start creates. */
  readonly key: string | undefined;
}

const start = async (server: Running): Promise<Started | undefined> => {
  const { listeners } = server;
  const ops = await openOperations(server);
  listeners.push(ops);
  const app = await openAppOf(server);
  await server.worker?.project();
  const key = await firstKey(app, server.configuration);
  const head = await app.log.head();
  const caughtUp = catchUp(server, app, head?.position ?? '');
  await Promise.race([caughtUp, pause(START_MS, server.stopping.signal)]);
  if (server.stopping.signal.aborted) return undefined;
  const { url } = await openApi(server, app).then((listener) => {
    listeners.push(listener);
    return listener;
  });
  await caughtUp;
  if (server.stopping.signal.aborted) return undefined;
  server.phase = 'ready';
  server.logger.info({ url, operations: ops.url, version: programVersion(), store: app.store }, 'ready');
  return { url, key };
};

const stop = async (server: Running, reason?: Fault): Promise<void> => {
  server.phase = 'stopping';
  server.stopping.abort(reason);
  // The operations listener, the first of them, says until the end that the service is not ready.
  const [operations, ...others] = server.listeners;
  await Promise.all(others.map((listener) => listener.close(server.times.shutdownMs)));
  await server.keyUses?.close();
  await operations?.close(server.times.shutdownMs);
  await server.app?.close();
};

export interface Server {
  /** Undefined: it was stopped before it was ready. */
  start(): Promise<Started | undefined>;
  /** Shuts down gracefully: finishes requests in flight. Event streams end with the reason, if there is one. */
  stop(reason?: Fault): Promise<void>;
}

/** `mustEnd` is called if the log is certain to be rolled back (`log_set_back`), or a thread died. */
export const makeServer = (
  configuration: Configuration,
  logger: Logger,
  mustEnd: (reason: Error) => void,
  times: Times = TIMES,
): Server => {
  const server: Running = {
    configuration,
    times,
    logger,
    listeners: [],
    stopping: new AbortController(),
    metrics: makeMetrics({
      app: () => server.app,
      limits: () => server.limits?.status(),
      isReady: () => server.phase === 'ready',
      backupAge: () => backupAgeSeconds(configuration),
    }),
    phase: 'starting',
    isCaughtUp: false,
    mustEnd,
    building: 0,
  };
  return {
    start: () =>
      start(server).catch(async (error: unknown) => {
        if (server.phase === 'stopping') return undefined;
        await stop(server);
        throw error;
      }),
    stop: (reason) => stop(server, reason),
  };
};
