import type { Logger } from 'pino';
import { keyUseRecord, type KeyUseRecord } from '../access/key-use-record';
import { pause } from '../async/clock';
import { singleFlight } from '../async/concurrency';
import { repeated } from '../async/repeated';
import { errorOf } from '../async/thread';
import { eventSource } from '../audit/event-source';
import { readOrigins, type Configuration, programVersion } from '../configuration';
import { compileEventSchemas } from '../event-log/codec';
import { appendToEnd, type Position } from '../event-log/event-log';
import { evidenceKey } from '../evidence/note';
import { codeOf, fault, isAway, isFinal, messageOf, type Fault } from '../fault';
import { api } from '../http/api';
import { headerNames, type ApiDependencies } from '../http/context';
import { operations } from '../http/operations';
import { openListener, type Answering, type Listener } from '../http/server';
import { reportingFacts } from '../ingest/report-facts';
import { readPolicies } from '../limits/policies';
import { rateLimits, type RateLimits } from '../limits/rate-limits';
import { portalFiles } from '../portal/files';
import { portal } from '../portal/portal';
import { TIMES, type Times } from '../times';
import type { Report } from './adapters';
import { openApp, type App } from './app';
import { backupAgeSeconds } from './backups';
import { mustHaveRoom } from './data-folder';
import { firstKey } from './demo';
import { readModelStoreOf, storeOf } from './log-address';
import { makeMetrics, type Metrics } from './metrics';
import { reporter } from './reporter';
import { noteServer } from './running-server';
import { ledgerStatus, type LedgerStatus } from './status';
import { workerThread, type WorkerReport } from './worker-thread';

/** Each costs some memory. A lower limit of open files holds as well. */
const MAX_CONNECTIONS = 10_000;
/** For a probe, a scraper and a few operators. */
const MAX_OPERATIONS_CONNECTIONS = 32;

interface Running {
  readonly configuration: Configuration;
  readonly times: Times;
  readonly logger: Logger;
  readonly report: Report;
  readonly listeners: Listener[];
  /** Ends event streams, which otherwise last until the client disconnects. */
  readonly stopping: AbortController;
  readonly metrics: Metrics;
  /** Concurrent probes and scrapes share one query, so that they do not pile up on a store that does not respond. */
  readonly status: () => Promise<LedgerStatus>;
  /** Called if the log is certain to be rolled back, or a thread died. */
  readonly mustEnd: (reason: Error) => void;
  app?: App;
  keyUses?: KeyUseRecord;
  limits?: RateLimits;
  phase: 'starting' | 'ready' | 'stopping';
  /** The read models have shown what was in the log at the start. No read of them is answered before. */
  isCaughtUp: boolean;
  /** How much of the log a first build has read, from 0 to 1. Not in events: their number is the operator's business. */
  building: number;
}

/** Read models that were set back by a power loss must not answer before they have caught up. */
const readModelsOf = (server: Running, { live, show }: App): ApiDependencies['readModels'] => ({
  show,
  query: async (tenantId, query) => {
    if (server.isCaughtUp) return live.query(tenantId, query);
    throw fault('read_models_unavailable', 'The read models have not caught up with the event log yet.', {
      progress: { percent: Math.floor(100 * server.building) },
    });
  },
});

const settingsOf = (configuration: Configuration): ApiDependencies['settings'] => ({
  headers: headerNames(configuration.HEADER_PREFIX),
  publicUrl: configuration.PUBLIC_URL,
  corsOrigins: readOrigins(configuration.CORS_ORIGINS) ?? [],
  recordsClients: configuration.RECORD_CLIENTS,
  trustedProxies: configuration.TRUSTED_PROXIES,
  version: programVersion(),
});

/** A start in a cluster waits for a store that is away as long as it takes; one that refuses us ends it. */
const untilAnswered = <T>(
  { configuration, report, stopping: { signal } }: Running,
  work: () => Promise<T>,
): Promise<T> => {
  const waitMs = (error: unknown): number | undefined => {
    if (configuration.EVENTSTORE_URL === '' || signal.aborted || !isAway(error) || isFinal(error))
      return undefined;
    report('A store does not answer, so the start waits for it.', error);
    return TIMES.retryMs;
  };
  return repeated(work, waitMs, signal);
};

const apiDependencies = async (server: Running, app: App): Promise<ApiDependencies> => {
  const { configuration, logger, metrics, report, stopping, times } = server;
  const { ledger, log, streams } = app;
  const secret = await untilAnswered(server, app.secret);
  const sharedLimiter = await untilAnswered(server, app.sharedLimiter);
  const keyUses = keyUseRecord({
    append: (tenantId, events) => appendToEnd(log, streams.activity(tenantId), events, times.backgroundMs),
    warn: report,
    recordsClients: configuration.RECORD_CLIENTS,
    collectMs: times.keyUsesMs,
    closeMs: times.lastMs,
  });
  const limits = rateLimits(readPolicies(configuration.RATE_LIMITS) ?? [], {
    shared: sharedLimiter,
    sharedWithinMs: times.sharedCountersMs,
    shownAloneMs: times.awayMs,
    report,
  });
  server.keyUses = keyUses;
  server.limits = limits;
  const settings = settingsOf(configuration);
  const readModels = readModelsOf(server, app);
  return {
    settings,
    portal: configuration.PORTAL
      ? portal({ secret, files: portalFiles(), settings, ledger, keyUses })
      : undefined,
    ledger,
    services: app.services,
    reportFacts: reportingFacts({ log, streams, ledger, readModels }),
    readModels,
    events: eventSource(app, stopping.signal),
    evidence: evidenceKey(secret),
    keyUses,
    limits,
    logger,
    metrics: metrics.requests,
  };
};

/** Listens where two settings say. */
const listen = async (
  { configuration, listeners, report }: Running,
  handle: Answering,
  { HOST, PORT }: { readonly HOST: 'HOST' | 'OPS_HOST'; readonly PORT: 'PORT' | 'OPS_PORT' },
  maxConnections: number,
): Promise<string> => {
  const { [HOST]: host, [PORT]: port } = configuration;
  const onError = (error: Error): void =>
    report(
      'A connection could not be accepted. If file descriptors ran out, raise the limit of open files.',
      error,
    );
  const listening = openListener(handle, { host, port, maxConnections, onError });
  const listener = await listening.catch((error: unknown) => {
    throw fault('port_unusable', `${HOST}=${host} ${PORT}=${port} cannot be used: ${messageOf(error)}.`);
  });
  listeners.push(listener);
  return listener.url;
};

const listenForRequests = async (server: Running, app: App): Promise<string> => {
  const handle = api(await apiDependencies(server, app)).callback();
  return listen(server, handle, { HOST: 'HOST', PORT: 'PORT' }, MAX_CONNECTIONS);
};

/** The stores that a start may have to wait for. */
const storesOf = (configuration: Configuration): string => {
  const log = `the event log ${storeOf(configuration)}`;
  if (configuration.MONGODB_URL === '') return log;
  return `${log} and the read models ${readModelStoreOf(configuration)}`;
};

const readiness = async (server: Running): Promise<LedgerStatus> => {
  server.app?.watch.mustBeWritable();
  const status = await server.status();
  if (server.phase !== 'ready' || status.read_models.set !== null) return status;
  throw fault(
    'read_models_unavailable',
    'The read models are gone or damaged. Restart the service, which builds them again, or run: tenant-ledger projections rebuild',
  );
};

/** Opened before the app, so that health checks can tell that the process is alive and what it waits for. */
const listenForOperators = (server: Running): Promise<string> => {
  const { configuration, metrics } = server;
  const handle = operations({
    phase: () => server.phase,
    waitingFor: () => (server.app === undefined ? storesOf(configuration) : undefined),
    status: () => readiness(server),
    limits: () => server.limits?.status(),
    metrics: metrics.registry,
  });
  return listen(server, handle, { HOST: 'OPS_HOST', PORT: 'OPS_PORT' }, MAX_OPERATIONS_CONNECTIONS);
};

const onReport = (server: Running, message: WorkerReport): void => {
  const { app, report } = server;
  switch (message.type) {
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
      if (codeOf(error) === 'log_set_back') app?.watch.lose(error as Fault);
    }
  }
};

const openAppOf = async (server: Running): Promise<App> => {
  const { configuration, metrics, mustEnd: onLost, report, times } = server;
  const compiling = compileEventSchemas();
  const worker = workerThread(configuration, (message) => onReport(server, message), onLost);
  const { measured } = metrics;
  const app = await openApp(configuration, report, { use: 'server', worker, measured, onLost, times });
  await compiling;
  server.app = app;
  await worker.project();
  return app;
};

/**
 * Waits until there are read models, and, where this process alone follows the log, they show what it had at the start,
 * which on a full disk would never be.
 */
const catchUp = async (server: Running, { live, readModels }: App, position: Position): Promise<void> => {
  const { signal } = server.stopping;
  const isShared = readModels.lease !== undefined;
  for (; !signal.aborted; await pause(TIMES.followMs, signal)) {
    const control = await live.look().then(
      (found) => found.control,
      () => undefined,
    );
    server.isCaughtUp = control !== undefined && (isShared || (control.to?.position ?? '') >= position);
    if (server.isCaughtUp) return;
    mustHaveRoom(server.configuration);
  }
};

/** The result of a successful start: the read models are up to date and requests are answered. */
export interface Started {
  readonly url: string;
  /** A key of the tenant that a first start creates. */
  readonly key: string | undefined;
}

/** Undefined: it was stopped before it was ready. */
const start = async (server: Running): Promise<Started | undefined> => {
  const { configuration, logger, stopping } = server;
  const operationsUrl = await listenForOperators(server);
  const app = await untilAnswered(server, () => openAppOf(server));
  const key = await firstKey(app, configuration);
  const head = await untilAnswered(server, app.log.head);
  const caughtUp = catchUp(server, app, head?.position ?? '');
  // Most starts take less. After this, requests are answered while the read models are not up to date yet.
  await Promise.race([caughtUp, pause(server.times.waitMs, stopping.signal)]);
  if (stopping.signal.aborted) return undefined;
  const url = await listenForRequests(server, app);
  if (configuration.EVENTSTORE_URL === '') noteServer(configuration, url, operationsUrl);
  await caughtUp;
  if (stopping.signal.aborted) return undefined;
  server.phase = 'ready';
  logger.info({ url, operations: operationsUrl, version: programVersion(), store: app.store }, 'ready');
  return { url, key };
};

/** Shuts down gracefully: finishes requests in flight. Event streams end with the reason, if there is one. */
const stop = async (server: Running, reason?: Fault): Promise<void> => {
  server.phase = 'stopping';
  server.stopping.abort(reason);
  // The operations listener, the first of them, says until the end that the service is not ready.
  const [forOperators, ...others] = server.listeners;
  await Promise.all(others.map((listener) => listener.close(server.times.shutdownMs)));
  await server.keyUses?.close();
  await forOperators?.close(server.times.shutdownMs);
  await server.app?.close();
};

/** `mustEnd` is called if the log is certain to be rolled back (`log_set_back`), or a thread died. */
export const makeServer = (
  configuration: Configuration,
  logger: Logger,
  mustEnd: (reason: Error) => void,
  times: Times = TIMES,
) => {
  const statuses = singleFlight(() => ledgerStatus(server.app as App));
  const status = () => statuses.since(-Infinity);
  const server: Running = {
    configuration,
    times,
    logger,
    report: reporter(logger),
    listeners: [],
    stopping: new AbortController(),
    metrics: makeMetrics(() => ({
      isReady: server.phase === 'ready',
      isLogUp: server.app?.watch.isAway() === false,
      limits: server.limits?.status(),
      backupAge: backupAgeSeconds(configuration),
      status,
    })),
    status,
    mustEnd,
    phase: 'starting',
    isCaughtUp: false,
    building: 0,
  };
  return {
    start: () =>
      start(server).catch(async (error: unknown) => {
        if (server.phase === 'stopping') return undefined;
        await stop(server);
        throw error;
      }),
    stop: (reason?: Fault) => stop(server, reason),
  };
};
