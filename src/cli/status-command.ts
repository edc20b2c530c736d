import type { Command } from 'commander';
import { ledgerStatus } from '../app/status';
import type { LedgerStatus } from '../app/status';
import type { JsonOption } from './arguments';
import { sessionCommand, type OperatorSession } from './session';
import { printJson, printRecord, printTable } from './output';
import { shareOf } from './progress';
import type { Io } from './io';

const parkedRows = ({ unreadable, read_models }: LedgerStatus) => [
  ...unreadable.map((tenant) => ({ in: 'decisions', ...tenant })),
  ...read_models.parked.map(({ tenant_id, event_id, position, reason }) => ({
    in: 'read models',
    tenant_id,
    event_id,
    position,
    reason,
  })),
];

const printTitled = (io: Io, title: string, rows: Parameters<typeof printTable>[1]): void => {
  if (rows.length === 0) return;
  io.stdout.write(`\n${title}:\n`);
  printTable(io, rows);
};

const print = ({ io }: OperatorSession, status: LedgerStatus): void => {
  const { store, identity, head } = status.log;
  const { set, position, lag_events, lag_seconds, building } = status.read_models;
  printRecord(io, {
    store,
    log: identity,
    head,
    ...(status.projector === undefined ? {} : { projector: status.projector }),
    read_models: set,
    position,
    lag_events,
    lag_seconds: lag_seconds.toFixed(1),
    ...(building === null ? {} : { building: `${building.set} ${shareOf(building.progress, 1)}` }),
  });
  printTitled(io, 'Parked', parkedRows(status));
};

const run = async (session: OperatorSession, options: JsonOption): Promise<void> => {
  const { io } = session;
  const status = await ledgerStatus(session.app, { readsParked: true });
  if (parkedRows(status).length > 0) io.exitCode = 1;
  if (options.json === true) printJson(io, status);
  else print(session, status);
};

export const statusCommand = (io: Io): Command =>
  sessionCommand(io, 'status', run).description(
    'show the event log, how far the read models and a rebuild are, and what is parked; exit code 1 if a tenant is parked or unreadable',
  );
