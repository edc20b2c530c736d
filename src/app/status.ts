import type { App } from './app';
import { monotonicMs } from '../async/clock';
import type { EventLog, Position } from '../event-log/event-log';
import { firstOf } from '../event-log/reading';
import { projections } from '../../projections/projections';
import { rebuildLease } from '../projecting/lease';
import type { RebuildStep } from '../projecting/rebuild';
import { damaged, damageIn } from '../read-models/damage';
import { generationName, PARKED, type RegistryState } from '../read-models/read-models';
import { exists, type LiveGeneration } from '../projecting/live-generations';
import type { ParkedTenant } from '../projecting/parked-tenants';
import type { LedgerStatus, ProjectionStatus, RunningRebuild } from '../projecting/status';

const rebuildsIn = ({ leases }: RegistryState): readonly RunningRebuild[] =>
  projections.flatMap(({ name: projection }) => {
    const { holder, note = '' } = leases.get(rebuildLease(projection)) ?? {};
    if (holder === undefined) return [];
    if (note === '') return { projection, holder, step: 'building', progress: 0 };
    const at = JSON.parse(note) as RebuildStep;
    const progress = at.step === 'building' ? at.done / Math.max(1, at.total) : 1;
    return { projection, holder, step: at.step, progress };
  });

const MAX_SHOWN = 100;
const MAX_READ_MS = 1_000;

interface Lag {
  readonly lag_events: number;
  readonly lag_seconds: number;
}

const NO_LAG: Lag = { lag_events: 0, lag_seconds: 0 };

/** How far a position is behind the head of the log. */
const lagBehind = async (
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

/** Caches by position, since most read models are at the same one. */
const lags = (log: EventLog, head: Promise<Position | undefined>) => {
  const cached = new Map<Position | undefined, Promise<Lag>>();
  return (position: Position | undefined): Promise<Lag> => {
    const lag = cached.get(position) ?? head.then((last) => lagBehind(log, last, position));
    cached.set(position, lag);
    return lag;
  };
};

const statusOf = async (
  { projector, generation }: LiveGeneration,
  lagAt: (position: Position | undefined) => Promise<Lag>,
  stored: Promise<RegistryState>,
): Promise<ProjectionStatus> => {
  const { id, reader } = generation;
  const names = { projection: projector.name, generation: exists(generation) ? generationName(id) : null };
  const { damage: marked } =
    (await stored).generations.find((row) => generationName(row) === names.generation) ?? {};
  const trouble = (why: string | undefined) =>
    why === undefined ? {} : { damage: damaged(id, why).message };
  try {
    const [[applied, lag], parked] = await Promise.all([
      reader.applied().then(async (at) => [at, await lagAt(at)] as const),
      generation.scan(PARKED, MAX_SHOWN),
    ]);
    const tenants = parked.map(({ document }) => document as unknown as ParkedTenant);
    return { ...names, position: applied ?? null, ...lag, parked: tenants, ...trouble(marked) };
  } catch (error) {
    const why = marked ?? damageIn(error)?.why;
    if (why === undefined && exists(generation)) throw error;
    return { ...names, position: null, ...(await lagAt(undefined)), parked: [], ...trouble(why) };
  }
};

/** Tries to read the own streams of parked tenants. Those that cannot be read are then listed by `unreadable`. */
const readParked = async (ledger: App['ledger'], statuses: readonly ProjectionStatus[]): Promise<void> => {
  const tenants = new Set(statuses.flatMap(({ parked }) => parked.map(({ tenant_id }) => tenant_id)));
  for (const tenantId of tenants)
    await ledger.stateOf(tenantId, monotonicMs() + MAX_READ_MS).catch(() => undefined);
};

type Subject = Pick<App, 'log' | 'ledger' | 'projecting' | 'store'> & {
  replay: Pick<App['replay'], 'readModels'>;
  watch: Pick<App['watch'], 'missing' | 'setBack'>;
};

/** A server knows from requests which tenants cannot be read. A command has none: it passes `readsParked`. */
export const ledgerStatus = async (
  { log, ledger, projecting, store, replay, watch }: Subject,
  { readsParked = false } = {},
): Promise<LedgerStatus> => {
  // In parallel, because under load each of them takes a while.
  const headPosition = log.head().then((last) => last?.position);
  const lagAt = lags(log, headPosition);
  const stored = replay.readModels.state();
  const [head, identity, holder, shown] = await Promise.all([
    headPosition,
    log.identity(),
    projecting.holder(),
    Promise.all(projecting.live.map((live) => statusOf(live, lagAt, stored))),
  ]);
  // Read models may have applied events that came after the head was asked for.
  const positions = [head, ...shown.map(({ position }) => position ?? undefined)];
  const last = positions.reduce((a, b) => ((b ?? '') > (a ?? '') ? b : a));
  if (readsParked) await readParked(ledger, shown);
  const trouble = (watch.setBack() ?? watch.missing())?.message;
  return {
    log: { store, identity, head: last ?? null, ...(trouble === undefined ? {} : { trouble }) },
    projector: holder ?? null,
    projections: shown,
    rebuilds: rebuildsIn(await stored),
    decisions: { parked: ledger.unreadable() },
  };
};
