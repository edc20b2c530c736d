import type { Reader } from '../../projections/projector';
import type { Actor, OperatorEvent } from '../domain/events';
import { appendToEnd } from '../event-log/append-to-end';
import { encode } from '../event-log/codec';
import type { NewEvent } from '../event-log/event-log';
import { operatorEvents } from '../event-log/operator-events';
import { upTo } from '../event-log/reading';
import type { LedgerLog } from '../event-log/ledger-log';
import { codeOf, fault } from '../fault';
import { generationName, PARKED, type Scanner } from '../read-models/read-models';
import { documentsOf } from '../read-models/scanning';
import { batchOf, type Batch } from './batch';
import { foldWaiting, parkedKey, type Retried } from './fold-batch';
import type { LiveGeneration } from './live-generations';
import type { ProjectionRun } from './projection-run';

/** Why a tenant is parked in one projection, and where it resumes. */
export interface ParkedTenant {
  readonly tenant_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly position: string;
  /** When that event was recorded. Everything before it has been applied. */
  readonly recorded_at: string;
  /** Everything of the tenant up to here has been applied. Undefined: nothing has. */
  readonly after?: string;
  /** The event itself is bad, or events are missing before it. */
  readonly cause: 'bad_event' | 'missing_events';
  readonly reason: string;
  readonly since: string;
  /** The version of the program that failed. Another version retries automatically. */
  readonly program: string;
}

/** Why this tenant is parked in a read model, if it is. */
export const findParked = async (
  reader: Pick<Reader, 'get'>,
  tenantId: string,
): Promise<ParkedTenant | undefined> => {
  const { collection, key } = parkedKey(tenantId);
  return (await reader.get(tenantId, collection, key)) as unknown as ParkedTenant | undefined;
};

export const parkedTenants = (generation: Scanner): AsyncIterable<ParkedTenant> =>
  documentsOf(generation, PARKED);

/** Ordered by tenant. */
export const firstParked = async (generation: Scanner, limit: number): Promise<readonly ParkedTenant[]> => {
  const parked: ParkedTenant[] = [];
  for await (const tenant of parkedTenants(generation)) {
    parked.push(tenant);
    if (parked.length === limit) break;
  }
  return parked;
};

type Outcome = Retried['outcome'] | 'overtaken';

/** The progress of one retry. */
interface Retry {
  n: number;
  tenant: ParkedTenant;
}

/** Splits the batch in halves if it is too large for one commit. A single event too large leaves the tenant parked. */
const commitWaiting = async (
  run: ProjectionRun,
  retry: Retry,
  batch: Batch,
  last: boolean,
): Promise<Outcome> => {
  const retried = await foldWaiting(run, retry.tenant, batch, last);
  try {
    if (!(await run.generation.commit(retry.n, undefined, retried.writes))) return 'overtaken';
  } catch (error) {
    if (codeOf(error) !== 'commit_too_large') throw error;
    if (batch.length <= 1) return 'parked';
    const half = batch.length >> 1;
    const outcome = await commitWaiting(run, retry, batch.slice(0, half), false);
    return outcome === 'more' ? commitWaiting(run, retry, batch.slice(half), last) : outcome;
  }
  retry.n += 1;
  retry.tenant = retried.tenant;
  return retried.outcome;
};

/**
 * Reads the parked document after the control state, like all documents: another process may have freed the tenant since
 * it was listed, and its events must not be applied twice.
 */
const retryOnce = async (run: ProjectionRun, tenantId: string): Promise<Outcome> => {
  const { to, n } = await run.generation.control();
  const [parked] = await run.generation.load([parkedKey(tenantId)]);
  if (parked === undefined) return 'free';
  const retry: Retry = { n, tenant: parked as unknown as ParkedTenant };
  let outcome: Outcome = 'more';
  // The tenant's events that the generation has already passed.
  const waiting = upTo(run.log.readTenant(tenantId, { after: retry.tenant.after }), to?.position ?? '');
  for await (const due of waiting) {
    outcome = await commitWaiting(run, retry, batchOf(due, run.streams), false);
    if (outcome !== 'more') break;
  }
  if (outcome === 'more') outcome = await commitWaiting(run, retry, [], true);
  if (outcome !== 'overtaken') run.parkedChanged?.();
  return outcome;
};

/** Retries a parked tenant. Returns whether it is no longer parked. */
export const retryParked = async (run: ProjectionRun, tenantId: string): Promise<boolean> => {
  let outcome = await retryOnce(run, tenantId);
  while (outcome === 'overtaken') outcome = await retryOnce(run, tenantId);
  return outcome === 'free';
};

/**
 * Retries the tenants that another version of the program parked and may have parked wrongly, those whose event has been
 * set aside, and those that the operator wants retried.
 */
export const retryDue = async (
  run: ProjectionRun,
  isRequested: (tenantId: string) => boolean = () => false,
): Promise<void> => {
  const { event, gapBefore } = run.setAside;
  const isSetAside = ({ cause, event_id }: ParkedTenant): boolean =>
    (cause === 'missing_events' ? gapBefore : event)(run.projector.name, event_id);
  const isDue = (tenant: ParkedTenant): boolean =>
    isRequested(tenant.tenant_id) || tenant.program !== run.program || isSetAside(tenant);
  for await (const tenant of parkedTenants(run.generation))
    if (isDue(tenant)) await retryParked(run, tenant.tenant_id);
};

/** What the operator has set aside, per projection. Read before projecting; rebuild and verify follow it too. */
export interface SetAside {
  /** Whether to skip this event. */
  readonly event: (projection: string, eventId: string) => boolean;
  /** Whether to apply this event although events before it are missing. */
  readonly gapBefore: (projection: string, eventId: string) => boolean;
}

type OperatorEventType = OperatorEvent['type'];

const entryOf = (type: OperatorEventType, projection: string, eventId: string): string =>
  `${type} ${projection} ${eventId}`;

export const readSetAside = async (ledgerLog: LedgerLog): Promise<SetAside> => {
  const entries = new Set<string>();
  for await (const { type, data } of operatorEvents(ledgerLog))
    for (const projection of data.projections) entries.add(entryOf(type, projection, data.eventId));
  const has = (type: OperatorEventType) => (projection: string, eventId: string) =>
    entries.size > 0 && entries.has(entryOf(type, projection, eventId));
  return { event: has('EventSetAside'), gapBefore: has('GapAccepted') };
};

/** The result of setting aside an event. */
export interface DoneAside {
  readonly tenantId: string;
  /** The projections that skip the event. */
  readonly passedOver: readonly string[];
  /** The projections that apply it although events before it are missing. */
  readonly gapAccepted: readonly string[];
}

interface FoundParked {
  readonly projection: string;
  readonly tenant: ParkedTenant;
}

/** The projections in which this event parks its tenant now. */
const parkedAt = async (
  live: readonly LiveGeneration[],
  eventId: string,
): Promise<readonly FoundParked[]> => {
  const found: FoundParked[] = [];
  for (const { projector, generation } of live)
    for await (const tenant of parkedTenants(generation))
      if (tenant.event_id === eventId) found.push({ projection: projector.name, tenant });
  return found;
};

/**
 * Unparks a tenant in the projections in which it is parked at this event: they skip the event or accept the gap before
 * it. The log keeps the event, and records this decision.
 */
export const setAside = async (
  { log, streams, live }: LedgerLog & { live: readonly LiveGeneration[] },
  input: { eventId: string; reason: string; actor: Actor; at: string },
): Promise<DoneAside> => {
  const { eventId, reason, actor, at } = input;
  const found = await parkedAt(live, eventId);
  const [first] = found;
  if (first === undefined)
    throw fault('not_parked', `No tenant is parked at event ${eventId} in any projection.`);
  const parkedBy = (cause: ParkedTenant['cause']): readonly string[] =>
    found.filter(({ tenant }) => tenant.cause === cause).map(({ projection }) => projection);
  const [tenantId, passedOver, gapAccepted] = [
    first.tenant.tenant_id,
    parkedBy('bad_event'),
    parkedBy('missing_events'),
  ];
  const eventOf = (type: OperatorEventType, projections: readonly string[]): readonly NewEvent[] => {
    const data = { eventId, eventTenantId: tenantId, projections, reason };
    return projections.length === 0 ? [] : [encode({ type, data }, { actor, at })];
  };
  const events = [...eventOf('EventSetAside', passedOver), ...eventOf('GapAccepted', gapAccepted)];
  await appendToEnd(log, streams.operator(), events);
  return { tenantId, passedOver, gapAccepted };
};

/** A tenant parked at an event. */
export type Blocked = Pick<ParkedTenant, 'tenant_id' | 'event_id' | 'reason'>;

/** The tenants parked in a projection, ordered by id. `isCut`: there may be more. */
export interface ParkedReport {
  readonly projection: string;
  readonly parked: readonly Blocked[];
  readonly isCut: boolean;
}

const MAX_REPORTED = 1_000;

const reportOn = async ({ projector, generation }: LiveGeneration): Promise<ParkedReport> => {
  const parked = await firstParked(generation, MAX_REPORTED);
  return {
    projection: projector.name,
    parked: parked.map(({ tenant_id, event_id, reason }) => ({ tenant_id, event_id, reason })),
    isCut: parked.length === MAX_REPORTED,
  };
};

/**
 * Reports the tenants parked in the live read models: at first, after a switch, and when this or another process may
 * have changed them.
 */
export const parkedReports = (report: (parked: ParkedReport) => void) => {
  const changed = new Set<string>();
  const reported = new Map<string, string>();
  return {
    changed: (generation: string): void => void changed.add(generation),
    /** Forces new reports: another process may have projected until now. */
    begin: (): void => reported.clear(),
    look: async (live: readonly LiveGeneration[]): Promise<void> => {
      for (const current of live) {
        const name = generationName(current.generation.id);
        if (!changed.delete(name) && reported.get(current.projector.name) === name) continue;
        reported.delete(current.projector.name);
        report(await reportOn(current));
        reported.set(current.projector.name, name);
      }
    },
  };
};
