import { monotonicMs } from '../async/clock';
import type { EventLog, Position } from '../event-log/event-log';
import { firstOf } from '../event-log/reading';
import type { UnreadableTenant } from '../ledger/fold';
import type { ParkedTenant } from '../projecting/parked-tenants';
import { GRACE_MS, PARKED, type ReadModels } from '../read-models/read-models';
import type { App } from './app';

/** A set that nobody reads yet. */
interface BuildStatus {
  readonly set: string;
  readonly position: Position | null;
  /** How much of the log it has read, from 0 to 1. */
  readonly progress: number;
}

/** The snake case is what `/readyz` and `status --json` show. */
export interface SetStatus {
  /** Null: there is none yet. */
  readonly set: string | null;
  readonly position: Position | null;
  readonly lag_events: number;
  /** The age of the oldest event in the log that was not applied yet. */
  readonly lag_seconds: number;
  /** Only the first ones, if there are many. */
  readonly parked: readonly ParkedTenant[];
  readonly building: BuildStatus | null;
}

export interface LedgerStatus {
  readonly log: {
    /** Where it is stored. */
    readonly store: string;
    readonly identity: string;
    readonly head: Position | null;
  };
  /** The process that projects, where only one of several does. */
  readonly projector?: string | null;
  readonly read_models: SetStatus;
  /** Tenants whose own stream cannot be read, so that everything of theirs is refused. */
  readonly unreadable: readonly UnreadableTenant[];
}

const MAX_SHOWN = 100;

/** The build of this version that was renewed last, if that was lately. */
const findBuild = async (readModels: ReadModels, log: EventLog): Promise<BuildStatus | null> => {
  const [build] = (await readModels.list())
    .filter(({ version, isLive }) => version === readModels.version && !isLive)
    .filter(({ control: { next, removed } }) => next === undefined && removed === undefined)
    .filter(({ control }) => Date.now() - Date.parse(control.renewedAt) < GRACE_MS)
    .toSorted((a, b) => (a.control.renewedAt > b.control.renewedAt ? -1 : 1));
  if (build === undefined) return null;
  const position = build.control.to?.position ?? null;
  const head = await log.head();
  const total = head === undefined ? 0 : await log.distance(undefined, head.position);
  const done = position === null ? 0 : await log.distance(undefined, position);
  return { set: build.id, position, progress: total === 0 ? 1 : Math.min(1, done / total) };
};

const lagOf = async (log: EventLog, position: Position | undefined) => {
  const head = await log.head();
  const oldest =
    head === undefined || head.position <= (position ?? '')
      ? undefined
      : await firstOf(log.readAll({ after: position }));
  if (head === undefined || oldest === undefined) return { lag_events: 0, lag_seconds: 0 };
  const lag_seconds = Math.max(0, (Date.now() - Date.parse(oldest.recordedAt)) / 1_000);
  return { lag_events: await log.distance(position, head.position), lag_seconds };
};

const readStatus = async (readModels: ReadModels, log: EventLog): Promise<SetStatus> => {
  const [live, building] = await Promise.all([readModels.live(), findBuild(readModels, log)]);
  const { to, parked = 0 } = live?.control ?? {};
  const rows = live === undefined || parked === 0 ? [] : await live.set.scan(PARKED, MAX_SHOWN);
  return {
    set: live?.set.id ?? null,
    position: to?.position ?? null,
    ...(await lagOf(log, to?.position)),
    parked: rows.map(({ text }) => JSON.parse(text) as ParkedTenant),
    building,
  };
};

const MAX_READ_MS = 1_000;

/** Tries to read the own streams of parked tenants. Those that cannot be read are then listed by `unreadable`. */
const readParked = async ({ ledger }: Pick<App, 'ledger'>, { parked }: SetStatus): Promise<void> => {
  for (const { tenant_id } of parked)
    await ledger.ask(tenant_id, monotonicMs() + MAX_READ_MS, () => undefined).catch(() => undefined);
};

type Subject = Pick<App, 'log' | 'ledger' | 'store' | 'replay'>;

/** A server knows from requests which tenants cannot be read. A command has none: it passes `readsParked`. */
export const ledgerStatus = async (app: Subject, { readsParked = false } = {}): Promise<LedgerStatus> => {
  const { log, ledger, store, replay } = app;
  const { readModels } = replay;
  // In parallel, because under load each of them takes a while.
  const [status, head, identity, holder] = await Promise.all([
    readStatus(readModels, log),
    log.head(),
    log.identity(),
    readModels.lease?.holder(),
  ]);
  if (readsParked) await readParked(app, status);
  // The read models may have applied events that came after the head was asked for.
  const last = [head?.position ?? '', status.position ?? ''].toSorted().at(-1);
  return {
    log: { store, identity, head: last === '' ? null : (last ?? null) },
    ...(readModels.lease === undefined ? {} : { projector: holder ?? null }),
    read_models: status,
    unreadable: ledger.unreadable(),
  };
};
