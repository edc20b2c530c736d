import { statfsSync, type StatsFs } from 'node:fs';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { groupedBy } from '../grouping';
import { DAY_MS, monotonicMs, orUndefined, threadMs } from '../async/clock';
import type { EventLog, Position } from '../event-log/event-log';
import { codeOf } from '../fault';
import type { ApiContext } from '../http/context';
import type { RequestMetrics } from '../http/dependencies';
import { RESPOND_MS } from '../http/operations';
import { sentStatus } from '../http/response/access-log';
import type { Connections } from '../http/listener';
import type { RateLimits, RateLimitsStatus } from '../limits/rate-limits';
import { singleFlight } from '../async/single-flight';
import type { LedgerStatus, ProjectionStatus } from '../projecting/status';
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
  readonly limits: () => RateLimits | undefined;
  /** Undefined until the API listens. */
  readonly connections: () => Promise<Connections | undefined>;
  readonly isReady: () => boolean;
  readonly folder: string;
  /** Undefined: the log is not one that the service backs up. */
  readonly backupAge: () => number | undefined;
}

const PREFIX = 'tenant_ledger_';

/** In seconds. The last is the promised maximum of a response. */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2];

const UNAVAILABLE = 503;
const READS = new Set(['GET', 'HEAD']);

const outcomeOf = (error: unknown): string => {
  const code = codeOf(error);
  if (code === 'stream_changed') return 'conflict';
  if (code === 'log_unavailable') return 'unavailable';
  return code === 'outcome_unknown' ? 'unknown' : 'failed';
};

/** Leaves enough time to replace the key. */
const EXPIRING_DAYS = 7;

const isKeyExpiring = ({ identity, at }: ApiContext['state']): boolean =>
  identity?.expiresAt !== undefined &&
  Date.parse(identity.expiresAt) - Date.parse(at) < EXPIRING_DAYS * DAY_MS;

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
  const expiring = new Counter({
    name: `${PREFIX}expiring_key_uses_total`,
    help: 'Requests with a key that expires within a week.',
    registers,
  });
  const refusals = new Counter({
    name: `${PREFIX}rate_limit_refusals_total`,
    help: 'Requests that a rate limit refused.',
    labelNames: ['policy'],
    registers,
  });
  const unavailable = new Counter({
    name: `${PREFIX}reads_unavailable_total`,
    help: 'Reads that were answered with 503, by the code of the problem.',
    labelNames: ['code'],
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
      const { route = 'none', problem, refusedBy } = state;
      const status = sentStatus(ctx) ?? 'none';
      underWay.dec();
      duration.observe({ method, route, status }, (monotonicMs() - state.arrivedMs) / 1_000);
      const outcome = keyCheckOf(state);
      if (outcome !== undefined) keyChecks.inc({ outcome });
      if (isKeyExpiring(state)) expiring.inc();
      if (refusedBy !== undefined) refusals.inc({ policy: refusedBy });
      if (state.isReadPending === true) pending.inc();
      if (status === UNAVAILABLE && READS.has(method)) unavailable.inc({ code: problem ?? 'none' });
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

/** The state at one scrape. */
interface Snapshot {
  readonly isReady: boolean;
  readonly folder: string;
  readonly backupAge: number | undefined;
  readonly limits: RateLimitsStatus | undefined;
  readonly connections: Connections | undefined;
  /** Undefined: the stores are not open yet. */
  readonly app: App | undefined;
  /** Undefined: the stores did not answer. */
  readonly ledger: LedgerSnapshot | undefined;
}

interface LedgerSnapshot {
  readonly status: LedgerStatus;
  /** The number of events in the log up to each position. */
  readonly events: ReadonlyMap<Position, number>;
}

type Values = readonly (readonly [value: number, labels?: Readonly<Record<string, string>>])[];

interface Reading {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
  readonly read: (snapshot: Snapshot) => Values;
}

const flag = (condition: boolean): Values => [[condition ? 1 : 0]];

const perProjection =
  (read: (status: ProjectionStatus, ledger: LedgerSnapshot) => number) =>
  ({ ledger }: Snapshot): Values =>
    ledger === undefined
      ? []
      : ledger.status.projections.map((status) => [read(status, ledger), { projection: status.projection }]);

const parkedEvents = ({ projections }: LedgerStatus): Values => {
  const all = projections.flatMap(({ parked }) => parked);
  return [...groupedBy(all, ({ tenant_id, event_id }) => `${tenant_id} ${event_id}`).values()].map(
    ([{ tenant_id, event_id }, ...others]) => [1 + others.length, { tenant_id, event_id }],
  );
};

const diskOf = (folder: string, read: (disk: StatsFs) => number): Values => {
  try {
    return [[read(statfsSync(folder))]];
  } catch {
    return [];
  }
};

/** Read at every scrape. Values that are unknown at the moment are omitted, never reported stale. */
const readings: readonly Reading[] = [
  {
    name: 'build_info',
    help: 'Always 1; what runs is in the labels.',
    labels: ['version', 'node'],
    read: () => [[1, { version: programVersion(), node: process.version }]],
  },
  {
    name: 'ready',
    help: '1 when requests are answered, 0 while the service starts or stops.',
    read: ({ isReady }) => flag(isReady),
  },
  {
    name: 'event_log_up',
    help: '1 when the event log answers, 0 when it is out of reach or was rolled back.',
    read: ({ app }) => flag(app?.watch.isAway() === false && app.watch.setBack() === undefined),
  },
  {
    name: 'event_log_events',
    help: 'Events in the log; an estimate where counting would mean reading.',
    read: ({ ledger }) =>
      ledger === undefined ? [] : [[ledger.events.get(ledger.status.log.head ?? '') ?? 0]],
  },
  {
    name: 'projector_up',
    help: '1 when some process projects, 0 when nobody holds the lease.',
    read: ({ ledger }) => (ledger === undefined ? [] : flag(ledger.status.projector !== null)),
  },
  {
    name: 'projection_up',
    help: '1 when the live generation can be read, 0 when it is damaged and must be rebuilt.',
    labels: ['projection'],
    read: perProjection(({ damage }) => (damage === undefined ? 1 : 0)),
  },
  {
    name: 'projection_position',
    help: 'Events of the log up to the position that the live generation shows.',
    labels: ['projection'],
    read: perProjection(({ position }, { events }) => events.get(position ?? '') ?? 0),
  },
  {
    name: 'projection_lag_events',
    help: 'Events that the live generation does not show yet.',
    labels: ['projection'],
    read: perProjection(({ lag_events }) => lag_events),
  },
  {
    name: 'projection_lag_seconds',
    help: 'How long the oldest event that the live generation does not show has been in the log.',
    labels: ['projection'],
    read: perProjection(({ lag_seconds }) => lag_seconds),
  },
  {
    name: 'parked_tenants',
    help: 'Tenants that wait at a bad event; 100 means that many or more.',
    labels: ['projection'],
    read: perProjection(({ parked }) => parked.length),
  },
  {
    name: 'parked_events',
    help: 'One series per bad event at which a tenant waits, at most 100 per projection: how many projections wait at it.',
    labels: ['tenant_id', 'event_id'],
    read: ({ ledger }) => (ledger === undefined ? [] : parkedEvents(ledger.status)),
  },
  {
    name: 'unreadable_tenants',
    help: 'Tenants whose own stream cannot be read: their writes are refused.',
    read: ({ ledger }) => (ledger === undefined ? [] : [[ledger.status.decisions.parked.length]]),
  },
  {
    name: 'rebuild_progress_ratio',
    help: 'How much of the log a rebuild has read, from 0 to 1; absent when there is none.',
    labels: ['projection'],
    read: ({ ledger }) =>
      (ledger?.status.rebuilds ?? []).map(({ projection, progress }) => [progress, { projection }]),
  },
  {
    name: 'http_connections',
    help: 'Open connections to the API.',
    read: ({ connections }) => (connections === undefined ? [] : [[connections.open]]),
  },
  {
    name: 'http_connections_max',
    help: 'How many connections to the API may be open.',
    read: ({ connections }) => (connections === undefined ? [] : [[connections.max]]),
  },
  {
    name: 'rate_limit_counters',
    help: 'Rate counters that are kept in memory.',
    read: ({ limits }) => (limits === undefined ? [] : [[limits.counters_kept]]),
  },
  {
    name: 'rate_limits_shared',
    help: '1 when instances share their rate counters, 0 when this one counts for itself.',
    read: ({ limits }) => flag(limits?.shared === true && limits.trouble === undefined),
  },
  {
    name: 'disk_free_bytes',
    help: 'Free space of the disk that holds DATA_DIR.',
    read: ({ folder }) => diskOf(folder, ({ bavail, bsize }) => bavail * bsize),
  },
  {
    name: 'disk_size_bytes',
    help: 'Size of the disk that holds DATA_DIR.',
    read: ({ folder }) => diskOf(folder, ({ blocks, bsize }) => blocks * bsize),
  },
  {
    name: 'backup_age_seconds',
    help: 'Time since the last `backup create`, or since the log was created if there was none; absent with an event store.',
    read: ({ backupAge }) => (backupAge === undefined ? [] : [[backupAge]]),
  },
];

const readingMetrics = (registers: Registry[]) => {
  const gauges = readings.map(({ name, help, labels = [], read }) => ({
    gauge: new Gauge({ name: `${PREFIX}${name}`, help, labelNames: [...labels], registers }),
    hasLabels: labels.length > 0,
    read,
  }));
  return (snapshot: Snapshot): void => {
    for (const { gauge, hasLabels, read } of gauges) {
      gauge.reset();
      // `reset` sets a gauge without labels to 0, which would be reported.
      if (!hasLabels) gauge.remove();
      for (const [value, labels] of read(snapshot)) gauge.set({ ...labels }, value);
    }
  };
};

const ledgerSnapshot = async (app: App): Promise<LedgerSnapshot> => {
  const status = await ledgerStatus(app, async () => undefined);
  const positions = [status.log.head, ...status.projections.map(({ position }) => position)];
  const events = new Map<Position, number>();
  for (const position of new Set(positions))
    if (position !== null) events.set(position, await app.log.distance(undefined, position));
  return { status, events };
};

export const makeMetrics = ({
  app,
  limits,
  connections,
  isReady,
  folder,
  backupAge,
}: MetricsDependencies): Metrics => {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const requests = requestMetrics(registers);
  const measured = appendMetrics(registers);
  const reconnects = new Counter({
    name: `${PREFIX}event_log_reconnects_total`,
    help: 'How often the event log came back after it had been out of reach.',
    registers,
  });
  const refused = new Counter({
    name: `${PREFIX}http_connections_refused_total`,
    help: 'Connections to the API that were one too many.',
    registers,
  });
  const set = readingMetrics(registers);
  // Concurrent scrapes share one query, so that they do not pile up on a store that does not respond.
  const snapshots = singleFlight(() => ledgerSnapshot(app() as App));
  return {
    requests,
    measured,
    registry,
    contentType: registry.contentType,
    text: async () => {
      const ledger =
        app() === undefined ? undefined : await orUndefined(snapshots.current().done, RESPOND_MS);
      reconnects.reset();
      reconnects.inc(app()?.watch.reconnects() ?? 0);
      const current = await connections();
      refused.reset();
      refused.inc(current?.refused ?? 0);
      const state = { isReady: isReady(), folder, backupAge: backupAge(), connections: current };
      set({ ...state, limits: limits()?.status(), app: app(), ledger });
      return registry.metrics();
    },
  };
};
