import type { Command } from 'commander';
import { ledgerStatus, type LedgerStatus } from '../app/status';
import type { JsonOption } from './arguments';
import { FAILED } from './failure';
import type { Io } from './io';
import { counted, printJson, printRecord, printTable } from './output';
import { shareOf } from './progress';
import { sessionCommand, type OperatorSession } from './session';

const parkedRows = ({ unreadable, read_models }: LedgerStatus) => [
  ...unreadable.map((tenant) => ({ in: 'decisions', ...tenant })),
  ...read_models.parked.map(({ tenant_id, event_id, position, reason }) => {
    return { in: 'read models', tenant_id, event_id, position, reason };
  }),
];

const run = async ({ io, app }: OperatorSession, { json }: JsonOption): Promise<void> => {
  const status = await ledgerStatus(app, { readsParked: true });
  const parked = parkedRows(status);
  if (parked.length > 0) io.exitCode = FAILED;
  if (json === true) return printJson(io, status);
  const { store, identity, head } = status.log;
  const { set, position, lag_events, lag_seconds, building } = status.read_models;
  printRecord(io, {
    store,
    log: identity,
    head,
    ...(status.projector === undefined ? {} : { projector: status.projector }),
    read_models: set,
    position,
    not_yet_followed:
      lag_events === 0 ? 'nothing' : `${counted(lag_events, 'event')}, for ${lag_seconds.toFixed(1)} s`,
    ...(building === null ? {} : { building: `${building.set} ${shareOf(building.progress, 1)}` }),
  });
  if (parked.length > 0) io.stdout.write('\nParked:\n');
  printTable(io, parked);
};

export const statusCommand = (io: Io): Command =>
  sessionCommand(io, 'status', run, 'look').description(
    'show the event log, how far it is followed, how far a rebuild is, and what is parked; exit code 1 if a tenant is parked or unreadable',
  );
