import type { App } from './app';
import { monotonicMs, orUndefined } from '../clock';
import type { EventLog, Position } from '../event-log/event-log';
import { firstOf } from '../event-log/reading';
import { projections } from '../../projections/projections';
import { rebuildLease } from '../projecting/lease';
import type { RebuildStep } from '../projecting/rebuild';
import { generationName, type ReadModels } from '../read-models/read-models';
import type { UnreadableTenant } from '../ledger/fold';
import type { LiveGeneration } from '../projecting/live-generations';
import { firstParked, type ParkedTenant } from '../projecting/parking';

/** How far a read model is behind the log. Snake case: this is what `/readyz` and `status --json` show. */
export interface ProjectionStatus {
  readonly projection: string;
  readonly generation: string;
  readonly position: Position | null;
  readonly lag_events: number;
  /** How long the oldest event that is not in has been in the log. */
  readonly lag_seconds: number;
  readonly parked: readonly ParkedTenant[];
}

export interface LedgerStatus {
  readonly log: {
    /** Where it is kept. */
    readonly store: string;
    readonly identity: string;
    readonly head: Position | null;
    /** What is wrong with it although it can be read. */
    readonly trouble?: string;
  };
  readonly projector: string | null;
  readonly projections: readonly ProjectionStatus[];
  /** Tenants whose own stream cannot be read: nothing can be decided about them. */
  readonly decisions: { readonly parked: readonly UnreadableTenant[] };
}

export interface RebuildUnderWay {
  readonly projection: string;
  readonly holder: string;
  /** As the rebuild last reported it; undefined: it has only begun. */
  readonly step: RebuildStep | undefined;
  /** From 0 to 1. */
  readonly progress: number;
}

const progressOf = (step: RebuildStep | undefined): number => {
  if (step === undefined) return 0;
  if (step.step !== 'building') return 1;
  return step.total === 0 ? 1 : step.done / step.total;
};

export const rebuildsUnderWay = async (readModels: ReadModels): Promise<readonly RebuildUnderWay[]> => {
  const found: RebuildUnderWay[] = [];
  for (const { name: projection } of projections) {
    const holder = await readModels.leaseHolder(rebuildLease(projection));
    if (holder === undefined) continue;
    const note = (await readModels.leaseNote(rebuildLease(projection))) ?? '';
    const step = note === '' ? undefined : (JSON.parse(note) as RebuildStep);
    found.push({ projection, holder, step, progress: progressOf(step) });
  }
  return found;
};

const MAX_SHOWN = 100;
const LOOK_MS = 1_000;
const BRIEF_MS = 200;

interface Lag {
  readonly lag_events: number;
  readonly lag_seconds: number;
}

const NO_LAG: Lag = { lag_events: 0, lag_seconds: 0 };

/** How far a position is behind the head of the log. */
export const lagBehind = async (
  log: EventLog,
  head: Position | undefined,
  position: Position | undefined,
): Promise<Lag> => {
  if (head === undefined || (position ?? '') >= head) return NO_LAG;
  const [lag_events, oldest] = await Promise.all([
    log.distance(position, head),
    firstOf(log.readAll({ after: position })),
  ]);
  if (lag_events === 0 || oldest === undefined) return NO_LAG;
  return { lag_events, lag_seconds: Math.max(0, (Date.now() - Date.parse(oldest.recordedAt)) / 1_000) };
};

/** Most read models are equally far: each position is looked at once. */
const lags = (log: EventLog, head: Promise<Position | undefined>) => {
  const known = new Map<Position | undefined, Promise<Lag>>();
  return (position: Position | undefined): Promise<Lag> => {
    const lag = known.get(position) ?? head.then((last) => lagBehind(log, last, position));
    known.set(position, lag);
    return lag;
  };
};

const statusOf = async (
  live: LiveGeneration,
  lagAt: (position: Position | undefined) => Promise<Lag>,
): Promise<ProjectionStatus> => {
  const { projector, generation } = live;
  const [[applied, lag], parked] = await Promise.all([
    generation.reader.applied().then(async (at) => [at, await lagAt(at)] as const),
    firstParked(generation, MAX_SHOWN),
  ]);
  return {
    projection: projector.name,
    generation: generationName(generation.id),
    position: applied ?? null,
    ...lag,
    parked,
  };
};

/** Asks of one tenant after another whether its stream can be read: what cannot is then among `unreadable`. */
export type LookAt = (ledger: App['ledger'], tenants: ReadonlySet<string>) => Promise<void>;

const lookAtAll: LookAt = async (ledger, tenants) => {
  const known = new Set(ledger.unreadable().map(({ tenant_id }) => tenant_id));
  for (const tenantId of tenants)
    if (!known.has(tenantId)) await ledger.stateOf(tenantId, monotonicMs() + LOOK_MS).catch(() => undefined);
};

/** The same, but nobody waits for long: what takes longer goes on, and is shown the next time. */
export const lookBriefly = (): LookAt => {
  let looking: Promise<void> | undefined;
  return async (ledger, tenants) => {
    looking ??= lookAtAll(ledger, tenants).finally(() => (looking = undefined));
    await orUndefined(looking, BRIEF_MS);
  };
};

type Asked = Pick<App, 'log' | 'ledger' | 'projecting' | 'store'> & { watch: Pick<App['watch'], 'missing'> };

export const ledgerStatus = async (
  { log, ledger, projecting, store, watch }: Asked,
  look: LookAt = lookAtAll,
): Promise<LedgerStatus> => {
  // All at once: under load each answer takes its time.
  const asked = log.head().then((last) => last?.position);
  const lagAt = lags(log, asked);
  const [head, identity, holder, shown] = await Promise.all([
    asked,
    log.identity(),
    projecting.holder(),
    Promise.all(projecting.live.map((live) => statusOf(live, lagAt))),
  ]);
  const suspects = new Set(shown.flatMap(({ parked }) => parked.map((tenant) => tenant.tenant_id)));
  await look(ledger, suspects);
  const trouble = watch.missing()?.message;
  return {
    log: { store, identity, head: head ?? null, ...(trouble === undefined ? {} : { trouble }) },
    projector: holder ?? null,
    projections: shown,
    decisions: { parked: ledger.unreadable() },
  };
};
