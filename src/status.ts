import type { App } from './app';
import { monotonicMs } from './clock';
import type { EventLog, Position } from './event-log/event-log';
import { generationName } from './read-models/read-models';
import type { ParkedTenant } from './projecting/fold-batch';
import type { LiveGeneration } from './projecting/live-generations';
import { parkedTenants } from './projecting/projection-run';

/** How far a read model is behind the log. Snake case: this is what `/readyz` and `status --json` show. */
export interface ProjectionStatus {
  readonly projection: string;
  readonly generation: string;
  readonly position: Position | null;
  readonly lag_events: number;
  /** The lag is at least that much: counting stopped there. */
  readonly lag_capped: boolean;
  /** How long the oldest event that is not in has been in the log. */
  readonly lag_seconds: number;
  readonly parked: readonly ParkedTenant[];
}

export interface LedgerStatus {
  readonly log: { readonly identity: string; readonly head: Position | null };
  readonly projector: string | null;
  readonly projections: readonly ProjectionStatus[];
  /** Tenants whose own stream cannot be read: nothing can be decided about them. */
  readonly decisions: { readonly parked: readonly UnreadableTenant[] };
}

export interface UnreadableTenant {
  readonly tenant_id: string;
  readonly event_id: string;
  readonly position: Position;
  readonly reason: string;
}

const MOST_COUNTED = 5_000;
const MOST_SHOWN = 100;
const LOOK_MS = 1_000;

const lagOf = async (log: EventLog, applied: Position | undefined, now: number) => {
  let events = 0;
  let oldest: string | undefined;
  for await (const batch of log.readAll({ after: applied })) {
    oldest ??= batch[0]?.recordedAt;
    events += batch.length;
    if (events >= MOST_COUNTED) break;
  }
  const lag_seconds = oldest === undefined ? 0 : Math.max(0, (now - Date.parse(oldest)) / 1_000);
  return { lag_events: events, lag_capped: events >= MOST_COUNTED, lag_seconds };
};

const firstParked = async ({ generation }: LiveGeneration): Promise<readonly ParkedTenant[]> => {
  const parked: ParkedTenant[] = [];
  for await (const tenant of parkedTenants(generation)) {
    parked.push(tenant);
    if (parked.length === MOST_SHOWN) break;
  }
  return parked;
};

const statusOf = async (log: EventLog, live: LiveGeneration): Promise<ProjectionStatus> => {
  const { applied } = await live.generation.control();
  return {
    projection: live.projector.name,
    generation: generationName(live.generation.id),
    position: applied ?? null,
    ...(await lagOf(log, applied, Date.now())),
    parked: await firstParked(live),
  };
};

export const ledgerStatus = async ({
  log,
  ledger,
  projecting,
}: Pick<App, 'log' | 'ledger' | 'projecting'>) => {
  const projections = await Promise.all(projecting.live.map((live) => statusOf(log, live)));
  const suspects = new Set(projections.flatMap(({ parked }) => parked.map((tenant) => tenant.tenant_id)));
  for (const tenantId of suspects)
    await ledger.ask(tenantId, () => undefined, monotonicMs() + LOOK_MS).catch(() => undefined);
  const status: LedgerStatus = {
    log: { identity: await log.identity(), head: (await log.head())?.position ?? null },
    projector: (await projecting.holder()) ?? null,
    projections,
    decisions: {
      parked: ledger.unreadable().map(({ more }) => ({
        tenant_id: String(more['tenantId']),
        event_id: String(more['eventId']),
        position: String(more['position']),
        reason: String(more['reason']),
      })),
    },
  };
  return status;
};
