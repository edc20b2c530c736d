import { monotonicMs } from '../async/clock';
import { firstOf, type EventLog, type Position } from '../event-log/event-log';
import type { Ledger } from '../ledger/ledger';
import type { LiveSet, ParkedTenant, ReadModels } from '../read-models/read-models';
import { TIMES } from '../times';
import type { App } from './app';

/** The build of this version that was renewed last, if that was lately. Nobody reads it yet. */
const findBuild = async (readModels: ReadModels, log: EventLog, head: Position | undefined) => {
  const [build] = (await readModels.list())
    .filter(({ version, isLive }) => version === readModels.version && !isLive)
    .filter(({ control: { next, removed } }) => next === undefined && removed === undefined)
    .filter(({ control }) => Date.now() - Date.parse(control.renewedAt) < TIMES.graceMs)
    .toSorted((a, b) => (a.control.renewedAt > b.control.renewedAt ? -1 : 1));
  if (build === undefined) return null;
  const position = build.control.to?.position;
  const total = head === undefined ? 0 : await log.distance(undefined, head);
  const done = position === undefined ? 0 : await log.distance(undefined, position);
  const progress = total === 0 ? 1 : Math.min(1, done / total);
  return { set: build.id, position: position ?? null, progress };
};

/** What is not yet followed. What instances appended themselves may be shown already. */
const lagOf = async (log: EventLog, position: Position | undefined, head: Position | undefined) => {
  const isBehind = head !== undefined && head > (position ?? '');
  const oldest = isBehind ? await firstOf(log.readAll({ after: position })) : undefined;
  if (!isBehind || oldest === undefined) return { lag_events: 0, lag_seconds: 0 };
  const lag_seconds = Math.max(0, (Date.now() - Date.parse(oldest.recordedAt)) / 1_000);
  return { lag_events: await log.distance(position, head), lag_seconds };
};

const MAX_SHOWN = 100;

/** Only the first ones, if there are many. */
const parkedIn = async (live: LiveSet | undefined): Promise<readonly ParkedTenant[]> =>
  live === undefined || live.control.marks === 0 ? [] : live.set.parked(MAX_SHOWN);

/** Tries to read the own streams of parked tenants. Those that cannot be read are then listed by `unreadable`. */
const readParked = async (ledger: Ledger, parked: readonly ParkedTenant[]): Promise<void> => {
  for (const { tenant_id } of parked)
    await ledger.ask(tenant_id, monotonicMs() + TIMES.noAnswerMs, () => undefined).catch(() => undefined);
};

type Subject = Pick<App, 'log' | 'ledger' | 'store' | 'readModels'>;

/**
 * In snake case, as `/readyz` and `status --json` show it. A server knows from requests which tenants cannot be read. A
 * command has none: it passes `readsParked`.
 */
export const ledgerStatus = async (app: Subject, { readsParked = false } = {}) => {
  const { log, ledger, store, readModels } = app;
  const live = await readModels.live();
  // Asked for after the read models, so that they are never ahead of it.
  const head = (await log.head())?.position;
  const position = live?.control.to?.position;
  // In parallel, because under load each of them takes a while.
  const [lag, parked, building, identity, holder] = await Promise.all([
    lagOf(log, position, head),
    parkedIn(live),
    findBuild(readModels, log, head),
    log.identity(),
    readModels.lease?.holder(),
  ]);
  if (readsParked) await readParked(ledger, parked);
  return {
    log: { store, identity, head: head ?? null },
    // The process that follows the log, where only one of several does.
    ...(readModels.lease === undefined ? {} : { projector: holder ?? null }),
    read_models: { set: live?.set.id ?? null, position: position ?? null, ...lag, parked, building },
    // Tenants whose own stream cannot be read, so that everything of theirs is refused.
    unreadable: ledger.unreadable(),
  };
};

export type LedgerStatus = Awaited<ReturnType<typeof ledgerStatus>>;
