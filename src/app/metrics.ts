import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { monotonicMs, orUndefined } from '../async/clock';
import { programVersion } from '../configuration';
import type { EventLog } from '../event-log/event-log';
import { codeOf } from '../fault';
import type { ApiContext, RequestMetrics } from '../http/context';
import { sentStatus } from '../http/middleware';
import type { RateLimitsStatus } from '../limits/rate-limits';
import { TIMES } from '../times';
import type { LedgerStatus } from './status';

/** The metrics of the service, in the Prometheus text format. */
export interface Metrics {
  readonly requests: RequestMetrics;
  /** Measures the appends to a log. */
  measured(log: EventLog): EventLog;
  readonly registry: Registry;
}

/** What is asked at a scrape. */
export interface MetricsSource {
  readonly isReady: boolean;
  readonly isLogUp: boolean;
  readonly limits: RateLimitsStatus | undefined;
  /** Undefined: the log is not one that the service backs up. */
  readonly backupAge: number | undefined;
  /** Rejects, or takes too long, while the stores do not answer. */
  status(): Promise<LedgerStatus>;
}

/** In seconds. The last is the promised maximum of a response. */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2];

const OUTCOMES = { stream_changed: 'conflict', log_unavailable: 'unavailable', outcome_unknown: 'unknown' };

const outcomeOf = (error: unknown): string =>
  (OUTCOMES as Readonly<Record<string, string>>)[codeOf(error) ?? ''] ?? 'failed';

/** `accepted`, or why the key was refused; undefined: it was not checked. */
const keyCheckOf = ({ problem, reason, identity }: ApiContext['state']): string | undefined => {
  if (problem === 'key_refused') return reason;
  return identity === undefined ? undefined : 'accepted';
};

/** What every kind of metric is made from. */
const describeIn =
  (registry: Registry) =>
  <Label extends string>(name: string, help: string, ...labelNames: Label[]) => ({
    name: `tenant_ledger_${name}`,
    help,
    labelNames,
    registers: [registry],
  });

type Describe = ReturnType<typeof describeIn>;

const REQUEST_DURATION =
  'Time from the arrival of a request to the end of its answer. Streams last as long as their reader wants.';
const APPEND_DURATION =
  'Time of an append to the event log, by outcome: ok, conflict, unavailable, unknown (it may have been written), failed.';
const KEY_CHECKS = 'API keys that were checked, by outcome: accepted, or why they were refused.';
const READ_PENDING = 'Writes that were answered before the read models showed them.';

/** Clients cannot make the labels unbounded. */
const requestMetrics = (describe: Describe): RequestMetrics => {
  const duration = new Histogram({
    ...describe('http_request_duration_seconds', REQUEST_DURATION, 'method', 'route', 'status'),
    buckets: DURATION_BUCKETS,
  });
  const underWay = new Gauge(describe('http_requests_in_flight', 'Requests that are being answered.'));
  const keyChecks = new Counter(describe('key_checks_total', KEY_CHECKS, 'outcome'));
  const refusals = new Counter(
    describe('rate_limit_refusals_total', 'Requests that a rate limit refused.', 'policy'),
  );
  const pending = new Counter(describe('read_pending_total', READ_PENDING));
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

const appendMetrics = (describe: Describe): Metrics['measured'] => {
  const duration = new Histogram({
    ...describe('append_duration_seconds', APPEND_DURATION, 'outcome'),
    buckets: DURATION_BUCKETS,
  });
  return (log) => ({
    ...log,
    append: (...append) => {
      const observe = duration.startTimer();
      const appending = log.append(...append);
      appending.then(
        () => observe({ outcome: 'ok' }),
        (error: unknown) => observe({ outcome: outcomeOf(error) }),
      );
      return appending;
    },
  });
};

/** They are read at every scrape. */
const GAUGES = {
  ready: '1 when requests are answered, 0 while the service starts or stops.',
  event_log_up: '1 unless the last append found the event log out of reach, or it looks rolled back.',
  projector_up:
    '1 when some instance follows the log, 0 when nobody holds the lease; absent without MongoDB.',
  read_models_up:
    '1 when there are read models that can be read, 0 when they are not built yet, gone or damaged.',
  read_models_lag_events:
    'Events that are not yet followed. What instances appended themselves may be shown already.',
  read_models_lag_seconds: 'How long the oldest event that is not yet followed has been in the log.',
  parked_tenants: 'Tenants that wait at a bad event; 100 means that many or more.',
  unreadable_tenants: 'Tenants whose own stream cannot be read: their writes are refused.',
  rebuild_progress_ratio: 'How much of the log a rebuild has read, from 0 to 1; absent when there is none.',
  rate_limits_shared: '1 when instances share their rate counters, 0 when this one counts for itself.',
  backup_age_seconds:
    'Time since the last `backup create`, or since the log was created if there was none; absent with an event store.',
};

type GaugeName = keyof typeof GAUGES;

/** What is unknown at the moment is undefined: it is omitted, never reported stale. */
const valuesOf = (
  { isReady, isLogUp, limits, backupAge }: MetricsSource,
  ledger: LedgerStatus | undefined,
): Record<GaugeName, number | boolean | undefined> => ({
  ready: isReady,
  event_log_up: isLogUp,
  projector_up: ledger?.projector === undefined ? undefined : ledger.projector !== null,
  read_models_up: ledger && ledger.read_models.set !== null,
  read_models_lag_events: ledger?.read_models.lag_events,
  read_models_lag_seconds: ledger?.read_models.lag_seconds,
  parked_tenants: ledger?.read_models.parked.length,
  unreadable_tenants: ledger?.unreadable.length,
  rebuild_progress_ratio: ledger?.read_models.building?.progress,
  rate_limits_shared: limits?.shared === true,
  backup_age_seconds: backupAge,
});

export const makeMetrics = (source: () => MetricsSource): Metrics => {
  const registry = new Registry();
  const describe = describeIn(registry);
  collectDefaultMetrics({ register: registry });
  const requests = requestMetrics(describe);
  const measured = appendMetrics(describe);
  const running = { version: programVersion(), node: process.version };
  new Gauge(describe('build_info', 'Always 1; what runs is in the labels.', 'version', 'node')).set(
    running,
    1,
  );
  const readAtScrape = ([name, help]: [string, string]) =>
    new Gauge({
      ...describe(name, help),
      async collect() {
        const asked = source();
        const ledger = await orUndefined(asked.status(), TIMES.probeMs);
        const value = valuesOf(asked, ledger)[name as GaugeName];
        this.remove();
        if (value !== undefined) this.set(Number(value));
      },
    });
  Object.entries(GAUGES).forEach(readAtScrape);
  return { requests, measured, registry };
};
