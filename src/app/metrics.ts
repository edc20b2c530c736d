import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { monotonicMs, orUndefined, threadMs } from '../async/clock';
import type { EventLog } from '../event-log/event-log';
import { codeOf } from '../fault';
import type { ApiContext, RequestMetrics } from '../http/context';
import { sentStatus } from '../http/middleware/access-log';
import { RESPOND_MS } from '../http/operations';
import type { RateLimitsStatus } from '../limits/rate-limits';
import { singleFlight } from '../async/single-flight';
import type { LedgerStatus } from './status';
import { programVersion } from '../version';
import type { App } from './app';
import { ledgerStatus } from './status';

/** The metrics of the service, in the Prometheus text format. */
export interface Metrics {
  readonly requests: RequestMetrics;
  /** Measures the appends to a log. */
  measured(log: EventLog): EventLog;
  readonly contentType: string;
  text(): Promise<string>;
  readonly registry: Registry;
}

export interface MetricsDependencies {
  /** Undefined until the stores are open. */
  readonly app: () => App | undefined;
  readonly limits: () => RateLimitsStatus | undefined;
  readonly isReady: () => boolean;
  /** Undefined: the log is not one that the service backs up. */
  readonly backupAge: () => number | undefined;
}

const PREFIX = 'tenant_ledger_';

/** In seconds. The last is the promised maximum of a response. */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2];

const outcomeOf = (error: unknown): string => {
  const code = codeOf(error);
  if (code === 'stream_changed') return 'conflict';
  if (code === 'log_unavailable') return 'unavailable';
  return code === 'outcome_unknown' ? 'unknown' : 'failed';
};

/** `accepted`, or why the key was refused; undefined: it was not checked. */
const keyCheckOf = ({ problem, reason, identity }: ApiContext['state']): string | undefined => {
  if (problem === 'key_refused') return reason;
  return identity === undefined ? undefined : 'accepted';
};

const requestMetrics = (registers: Registry[]): RequestMetrics => {
  const duration = new Histogram({
    name: `${PREFIX}http_request_duration_seconds`,
    help: 'Time from the arrival of a request to the end of its answer. Streams last as long as their reader wants.',
    labelNames: ['method', 'route', 'status'],
    buckets: DURATION_BUCKETS,
    registers,
  });
  const underWay = new Gauge({
    name: `${PREFIX}http_requests_in_flight`,
    help: 'Requests that are being answered.',
    registers,
  });
  const keyChecks = new Counter({
    name: `${PREFIX}key_checks_total`,
    help: 'API keys that were checked, by outcome: accepted, or why they were refused.',
    labelNames: ['outcome'],
    registers,
  });
  const refusals = new Counter({
    name: `${PREFIX}rate_limit_refusals_total`,
    help: 'Requests that a rate limit refused.',
    labelNames: ['policy'],
    registers,
  });
  const pending = new Counter({
    name: `${PREFIX}read_pending_total`,
    help: 'Writes that were answered before the read models showed them.',
    registers,
  });

  /** Clients cannot make the labels unbounded. */
  return {
    began: () => underWay.inc(),
    ended: (ctx) => {
      const { method, state } = ctx;
      const { route = 'none', refusedBy } = state;
      const status = sentStatus(ctx) ?? 'none';
      underWay.dec();
      duration.observe({ method, route, status }, (monotonicMs() - state.arrivedMs) / 1_000);
      const outcome = keyCheckOf(state);
      if (outcome !== undefined) keyChecks.inc({ outcome });
      if (refusedBy !== undefined) refusals.inc({ policy: refusedBy });
      if (state.isReadPending === true) pending.inc();
    },
  };
};

const appendMetrics = (registers: Registry[]): Metrics['measured'] => {
  const duration = new Histogram({
    name: `${PREFIX}append_duration_seconds`,
    help: 'Time of an append to the event log, by outcome: ok, conflict, unavailable, unknown (it may have been written), failed.',
    labelNames: ['outcome'],
    buckets: DURATION_BUCKETS,
    registers,
  });
  return (log) => ({
    ...log,
    append: async (...append) => {
      const began = threadMs();
      let outcome = 'ok';
      try {
        return await log.append(...append);
      } catch (error) {
        outcome = outcomeOf(error);
        throw error;
      } finally {
        duration.observe({ outcome }, (threadMs() - began) / 1_000);
      }
    },
  });
};

/** What is asked at one scrape. */
interface Snapshot extends MetricsDependencies {
  /** Undefined: the stores did not answer. */
  readonly ledger: LedgerStatus | undefined;
}

type Values = readonly (readonly [value: number, labels?: Readonly<Record<string, string>>])[];

type Reading = readonly [name: string, help: string, read: (snapshot: Snapshot) => Values];

const flag = (condition: boolean): Values => [[condition ? 1 : 0]];

const ifKnown = (value: number | undefined): Values => (value === undefined ? [] : [[value]]);

/** Read at every scrape. Values that are unknown at the moment are omitted, never reported stale. */
const readings: readonly Reading[] = [
  [
    'build_info',
    'Always 1; what runs is in the labels.',
    () => [[1, { version: programVersion(), node: process.version }]],
  ],
  [
    'ready',
    '1 when requests are answered, 0 while the service starts or stops.',
    ({ isReady }) => flag(isReady()),
  ],
  [
    'event_log_up',
    '1 unless the last append found the event log out of reach, or it looks rolled back.',
    ({ app }) => flag(app()?.watch.isAway() === false),
  ],
  [
    'projector_up',
    '1 when some instance projects, 0 when nobody holds the lease; absent without MongoDB.',
    ({ ledger }) => (ledger?.projector === undefined ? [] : flag(ledger.projector !== null)),
  ],
  [
    'read_models_up',
    '1 when there are read models that can be read, 0 when they are not built yet.',
    ({ ledger }) => (ledger === undefined ? [] : flag(ledger.read_models.set !== null)),
  ],
  [
    'read_models_lag_events',
    'Events that the read models do not show yet.',
    ({ ledger }) => ifKnown(ledger?.read_models.lag_events),
  ],
  [
    'read_models_lag_seconds',
    'How long the oldest event that the read models do not show has been in the log.',
    ({ ledger }) => ifKnown(ledger?.read_models.lag_seconds),
  ],
  [
    'parked_tenants',
    'Tenants that wait at a bad event; 100 means that many or more.',
    ({ ledger }) => ifKnown(ledger?.read_models.parked.length),
  ],
  [
    'unreadable_tenants',
    'Tenants whose own stream cannot be read: their writes are refused.',
    ({ ledger }) => ifKnown(ledger?.unreadable.length),
  ],
  [
    'rebuild_progress_ratio',
    'How much of the log a rebuild has read, from 0 to 1; absent when there is none.',
    ({ ledger }) => ifKnown(ledger?.read_models.building?.progress),
  ],
  [
    'rate_limits_shared',
    '1 when instances share their rate counters, 0 when this one counts for itself.',
    ({ limits }) => flag(limits()?.shared === true),
  ],
  [
    'backup_age_seconds',
    'Time since the last `backup create`, or since the log was created if there was none; absent with an event store.',
    ({ backupAge }) => ifKnown(backupAge()),
  ],
];

const readingMetrics = (registers: Registry[]) => {
  const gauges = readings.map(([name, help, read]) => {
    const labelNames = name === 'build_info' ? ['version', 'node'] : [];
    return { gauge: new Gauge({ name: `${PREFIX}${name}`, help, labelNames, registers }), read };
  });
  return (snapshot: Snapshot): void => {
    for (const { gauge, read } of gauges) {
      gauge.remove({});
      for (const [value, labels] of read(snapshot)) gauge.set({ ...labels }, value);
    }
  };
};

export const makeMetrics = (dependencies: MetricsDependencies): Metrics => {
  const { app } = dependencies;
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const requests = requestMetrics(registers);
  const measured = appendMetrics(registers);
  const set = readingMetrics(registers);
  // Concurrent scrapes share one query, so that they do not pile up on a store that does not respond.
  const statuses = singleFlight(() => ledgerStatus(app() as App));
  return {
    requests,
    measured,
    registry,
    contentType: registry.contentType,
    text: async () => {
      const ledger = app() === undefined ? undefined : await orUndefined(statuses.current().done, RESPOND_MS);
      set({ ...dependencies, ledger });
      return registry.metrics();
    },
  };
};
