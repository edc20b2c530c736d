import { monotonicMs } from '../async/clock';
import { readStatus, type LedgerStatus, type SetStatus } from '../projecting/status';
import type { App } from './app';

const MAX_READ_MS = 1_000;

/** Tries to read the own streams of parked tenants. Those that cannot be read are then listed by `unreadable`. */
const readParked = async ({ ledger }: Pick<App, 'ledger'>, { parked }: SetStatus): Promise<void> => {
  for (const { tenant_id } of parked)
    await ledger.stateOf(tenant_id, monotonicMs() + MAX_READ_MS).catch(() => undefined);
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
