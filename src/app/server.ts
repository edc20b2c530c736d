import type { Logger } from 'pino';
import { keyUseRecord, type KeyUseRecord } from '../access/key-use-record';
import { openStreams } from '../audit/open-streams';
import { BACKGROUND_MS, monotonicMs, orUndefined } from '../async/clock';
import { readOrigins, type Configuration, headerNames } from '../configuration';
import { compileTenantSchemas } from '../event-log/codec';
import { appendToEnd } from '../event-log/append-to-end';
import type { Position } from '../event-log/event-log';
import { fault, type Fault } from '../fault';
import { api } from '../http/api';
import type { ApiDependencies } from '../http/dependencies';
import { openListener, type Listener } from '../http/listener';
import { operations } from '../http/operations';
import { readPolicies } from '../limits/policies';
import { rateLimits, type RateLimits } from '../limits/rate-limits';
import { portalFiles } from '../portal/files';
import { portal } from '../portal/portal';
import type { ParkedTenant } from '../projecting/parked-tenants';
import { cachingReader } from '../read-models/caching-reader';
import { condition, type Condition } from '../async/condition';
import { TIMES, type Times } from '../times';
import { programVersion } from '../version';
import type { Serving } from './adapters';
import { openApp, type App } from './app';
import { backupAgeSeconds } from './backups';
import { firstKey } from './demo';
import { buildMissing } from './first-builds';
import { readModelStoreOf, storeOf } from './log-address';
import { makeMetrics, type Metrics } from './metrics';
import { ANSWER_MS } from '../ledger/ledger';
import { writingThread } from './writing-thread';
import { readingThread, type ReadingThread } from './reading-thread';
import { reporter } from './reporter';
import { ledgerStatus } from './status';

/** How often a starting server updates its progress. */
const CATCH_UP_SLICE_MS = 250;
const MAX_LOOK_MS = 1_000;

interface Running {
  readonly configuration: Configuration;
  readonly times: Times;
  readonly logger: Logger;
  readonly listeners: Listener[];
  /** Ends event streams, which otherwise last until the client disconnects. */
  readonly stopping: AbortController;
  readonly reading: ReadingThread;
  readonly metrics: Metrics;
  app?: App;
  /** Read models that are built before projecting starts. */
  firstBuilds?: Promise<void>;
  keyUses?: KeyUseRecord;
  limits?: RateLimits;
  phase: 'starting' | 'ready' | 'stopping';
  /** Unlike `phase`, still says during shutdown whether reads may be answered. */
  wasReady: boolean;
  readonly becameReady: Condition;
  /** Called once the log is certain to be rolled back. */
  readonly onLost: (reason: Fault) => void;
  /** Until it is ready, as shown in responses. Not in events: their number is nobody's business but the operator's. */
  progress: { readonly percent: number };
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

/** Most starts take less: then the first reads wait for it. A longer one is answered with its progress. */
const BRIEF_START_MS = 2_000;

const whenReady = async (server: Running, until: number): Promise<void> => {
  const withinMs = until - ANSWER_MS - monotonicMs();
  if (!server.wasReady && withinMs > 0) await server.becameReady.wait({ withinMs });
};

const readerOnceReady = (server: Running, { projecting }: App): ApiDependencies['stores']['reader'] => {
  const reader = cachingReader(projecting.reader);
  return (projection) => {
    if (!server.wasReady)
      throw fault('starting', 'The read models have not caught up yet.', { progress: server.progress });
    return reader(projection);
  };
};

const openLimits = (server: Running, limiterOf: Serving['limiterOf']): RateLimits => {
  const policies = readPolicies(server.configuration.RATE_LIMITS) ?? [];
  server.limits = rateLimits(policies, { shared: limiterOf, report: reporter(server.logger) });
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

const apiDependencies = (server: Running, app: App, { secret, limiterOf }: Serving): ApiDependencies => {
  const { configuration, logger, reading } = server;
  const { ledger, projecting } = app;
  const keyUses = recordKeyUses(server, app);
  const openedMs = monotonicMs();
  const settings = settingsOf(configuration);
  return {
    settings,
    portal: configuration.PORTAL
      ? portal({ secret, files: portalFiles(), settings, keys: { ledger, keyUses } })
      : undefined,
    stores: {
      ledger,
      reader: readerOnceReady(server, app),
      events: { ledgerLog: app, reading, open: openStreams(), stopping: server.stopping.signal },
      keyUses,
      limits: openLimits(server, limiterOf),
    },
    readModels: {
      isReady: () => server.wasReady,
      whenReady: (deadline) => whenReady(server, Math.min(deadline, openedMs + BRIEF_START_MS)),
      // A store that does not respond must not delay responses that do not need it.
      upToDate: async () =>
        projecting.isUpToDate() || (await orUndefined(projecting.refresh(), MAX_LOOK_MS)) === true,
      reached: projecting.reached,
      isParked: projecting.isParked,
    },
    monitoring: { logger, metrics: server.metrics.requests },
  };
};

const openApi = async (server: Running, app: App): Promise<Listener> => {
  const { configuration, logger } = server;
  const dependencies = apiDependencies(server, app, await app.openServing());
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

/** Opened before the app, so that health checks can tell that the process is alive and what it waits for. */
const openOperations = (server: Running): Promise<Listener> => {
  const { configuration } = server;
  const { OPS_HOST: host, OPS_PORT: port } = configuration;
  const listener = operations({
    phase: () => server.phase,
    waitingFor: () => (server.app === undefined ? storesOf(configuration) : undefined),
    status: async () => {
      const app = server.app as App;
      await app.watch.mustBeWritable();
      return ledgerStatus(app);
    },
    limits: () => server.limits?.status(),
    metrics: server.metrics,
  });
  const onError = acceptFailures(server.logger);
  const maxConnections = MAX_OPERATIONS_CONNECTIONS;
  return openListener(listener, { host, port, onError, maxConnections });
};

const openAppOf = async (server: Running): Promise<App> => {
  const { configuration, logger } = server;
  const report = reporter(logger);
  /** A failure to project may be due to the log, so check that at once. */
  const onProjectingError = (what: string, error: unknown): void => {
    report(what, error);
    void server.app?.watch.check();
  };
  /** The same text from every projection: it is logged once. */
  const onParked = ({ tenant_id, event_id, reason }: ParkedTenant): void =>
    report(`Tenant ${tenant_id} is parked at event ${event_id}.`, new Error(reason));
  const compiling = compileTenantSchemas();
  const writing = writingThread(configuration, { onError: onProjectingError, onParked });
  const app = await openApp(configuration, report, {
    writing,
    measured: server.metrics.measured,
    onLost: server.onLost,
    times: server.times,
  });
  await compiling;
  server.app = app;
  return app;
};

/** The progress of the slowest read model. */
const progressTo = async ({ log, projecting }: App, head: Position): Promise<Running['progress']> => {
  const controls = await Promise.all(projecting.live.map(({ generation }) => generation.control()));
  const [slowest = ''] = controls.map(({ applied = '' }) => applied).toSorted();
  const total = await log.distance(undefined, head);
  const done = slowest === '' ? 0 : await log.distance(undefined, slowest);
  return { percent: total === 0 ? 0 : Math.floor((Math.min(done, total) / total) * 100) };
};

/** Waits until the read models have applied the events that the log had at the start. No read is answered before. */
const catchUp = async (server: Running, app: App): Promise<void> => {
  const head = await app.log.head();
  while (head !== undefined && server.phase !== 'stopping') {
    server.progress = await progressTo(app, head.position);
    if (await app.projecting.reached(head.position, CATCH_UP_SLICE_MS)) return;
    app.mustHaveRoom();
  }
};

/** The result of a successful start: the read models are up to date and requests are answered. */
export interface Started {
  readonly url: string;
  /** A key of the tenant that a first start creates. */
  readonly key: string | undefined;
}

const start = async (server: Running): Promise<Started | undefined> => {
  const { configuration, logger, listeners } = server;
  const ops = await openOperations(server);
  listeners.push(ops);
  const app = await openAppOf(server);
  const listener = await openApi(server, app);
  listeners.push(listener);
  app.watch.start();
  server.firstBuilds = buildMissing(app, configuration, {
    onProgress: (percent) => (server.progress = { percent }),
    onError: reporter(logger),
    abort: server.stopping.signal,
  });
  await server.firstBuilds;
  if (server.stopping.signal.aborted) return undefined;
  await app.projecting.start().catch((error: unknown) => {
    app.mustHaveRoom(error);
    throw error;
  });
  const key = await firstKey(app, configuration);
  await catchUp(server, app);
  if (server.phase === 'stopping') return undefined;
  server.phase = 'ready';
  server.wasReady = true;
  server.becameReady.notify();
  const { url } = listener;
  logger.info({ url, operations: ops.url, version: programVersion(), store: app.store }, 'ready');
  return { url, key };
};

const stop = async (server: Running, reason?: Fault): Promise<void> => {
  server.phase = 'stopping';
  server.stopping.abort(reason);
  await Promise.all(server.listeners.map((listener) => listener.close(server.times.shutdownMs)));
  await server.firstBuilds?.catch(() => undefined);
  await server.reading.close();
  await server.keyUses?.close();
  await server.app?.close();
};

export interface Server {
  /** Undefined: it was stopped before it was ready. */
  start(): Promise<Started | undefined>;
  /** Shuts down gracefully: finishes requests in flight. Event streams end with the reason, if there is one. */
  stop(reason?: Fault): Promise<void>;
}

/** `onLost` is called once the log is certain to be rolled back. Then the process must end. */
export const makeServer = (
  configuration: Configuration,
  logger: Logger,
  onLost: (reason: Fault) => void,
  times: Times = TIMES,
): Server => {
  const server: Running = {
    configuration,
    times,
    logger,
    listeners: [],
    stopping: new AbortController(),
    reading: readingThread(configuration, reporter(logger)),
    metrics: makeMetrics({
      app: () => server.app,
      limits: () => server.limits?.status(),
      isReady: () => server.phase === 'ready',
      backupAge: () => backupAgeSeconds(configuration),
    }),
    phase: 'starting',
    wasReady: false,
    becameReady: condition(),
    onLost,
    progress: { percent: 0 },
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
