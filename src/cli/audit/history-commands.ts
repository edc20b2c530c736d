import { Command, Option } from 'commander';
import { allEntities, differencesBetween, type Fields } from '../../audit/entity-fields';
import { accessTo } from '../../audit/past-applications';
import { tenantAt, type HistoryEntry, type Moment, type PastTenant } from '../../audit/tenant-history';
import type { Tenant } from '../../domain/tenant';
import type { LedgerLog } from '../../event-log/ledger-log';
import { fault } from '../../fault';
import { jsonOption, tenantOption, type JsonOption } from '../arguments';
import { momentOrPosition, mustBeOfLog, withConfiguredLog } from './arguments';
import { notice, printJson, printTable, valueText } from '../output';
import { actorText, changeText } from './pretty-events';
import type { Io } from '../io';

interface Options extends JsonOption {
  readonly tenant: string;
  readonly at?: Moment;
  readonly diff?: readonly Moment[];
}

const stateAt = async (
  ledgerLog: LedgerLog,
  tenantId: string,
  moment: Moment | undefined,
  onEntry?: (entry: HistoryEntry) => void,
): Promise<PastTenant> => {
  if (moment !== undefined && 'position' in moment) await mustBeOfLog(ledgerLog, moment.position);
  return tenantAt(ledgerLog, tenantId, moment, onEntry);
};

const mustExist = (tenant: Tenant, tenantId: string, moment: Moment | undefined): void => {
  if (tenant.status !== 'absent') return;
  const when =
    moment === undefined ? '' : ` at ${'time' in moment ? moment.time : `position ${moment.position}`}`;
  throw fault('tenant_not_found', `There is no tenant ${tenantId}${when}.`);
};

const fieldRows = (entities: ReadonlyMap<string, Fields>) =>
  [...entities].flatMap(([entity, fields]) =>
    Object.entries(fields).map(([field, value]) => ({ entity, field, value: valueText(value) })),
  );

const printHistory = (io: Io, tenant: Tenant, entries: readonly HistoryEntry[], json = false): void => {
  const entities = allEntities(tenant);
  if (json) return printJson(io, { state: Object.fromEntries(entities), history: entries });
  printTable(io, fieldRows(entities));
  io.stdout.write('\nChanges:\n');
  printTable(
    io,
    entries.map(({ at, type, entity_type, entity_id, actor, event_id, changes }) => ({
      at,
      type,
      entity: `${entity_type} ${entity_id}`,
      actor: actor === undefined ? undefined : actorText({ ...actor }),
      event_id,
      changes: changes.map((change) => changeText(change)).join(', '),
    })),
  );
};

const printDifferences = (io: Io, before: Tenant, after: Tenant, json = false): void => {
  const differences = differencesBetween(before, after);
  if (json) return printJson(io, differences);
  if (differences.length === 0) notice(io, 'Nothing differs.');
  printTable(
    io,
    differences.flatMap(({ entity, changes }) =>
      changes.map(({ field, from, to }) => ({ entity, field, from: valueText(from), to: valueText(to) })),
    ),
  );
};

const history = (io: Io, { tenant: tenantId, at, diff, json }: Options): Promise<void> =>
  withConfiguredLog(io, async (ledgerLog) => {
    if (diff !== undefined) {
      const { tenant: before } = await stateAt(ledgerLog, tenantId, diff[0]);
      const { tenant: after } = await stateAt(ledgerLog, tenantId, diff[1]);
      if (before.status === 'absent') mustExist(after, tenantId, diff[1]);
      return printDifferences(io, before, after, json);
    }
    const entries: HistoryEntry[] = [];
    const { tenant } = await stateAt(ledgerLog, tenantId, at, (entry) => entries.push(entry));
    mustExist(tenant, tenantId, at);
    printHistory(io, tenant, entries, json);
  });

const atOption = (): Option =>
  new Option('--at <moment>', 'a time or a position (default: now)').argParser(momentOrPosition);

export const historyCommand = (io: Io): Command =>
  new Command('history')
    .description('show a tenant as it was at a moment, and what was changed up to then, by whom')
    .addOption(tenantOption())
    .addOption(atOption())
    .addOption(
      new Option('--diff <moments...>', 'two moments: show only what differs between them')
        .argParser((text, before?: readonly Moment[]) => [...(before ?? []), momentOrPosition(text)])
        .conflicts('at'),
    )
    .addOption(jsonOption())
    .action((options: Options, command: Command) => {
      if (options.diff !== undefined && options.diff.length !== 2)
        command.error('error: --diff needs two moments, for example --diff 2031-01-01 2031-02-01');
      return history(io, options);
    });

const access =
  (io: Io) =>
  ({ tenant: tenantId, at, json }: Options): Promise<void> =>
    withConfiguredLog(io, async (ledgerLog) => {
      const then = await stateAt(ledgerLog, tenantId, at);
      const { tenant, time } = then;
      mustExist(tenant, tenantId, at);
      const rows = accessTo(then);
      if (json === true) return printJson(io, { at: time, status: tenant.status, applications: rows });
      if (tenant.status === 'deleted')
        return notice(io, `Tenant ${tenantId} was deleted: nobody had access.`);
      if (rows.length === 0) return notice(io, 'The tenant had no Applications.');
      printTable(
        io,
        rows.map(({ application_id, name, type, permissions, keys }) => ({
          application_id,
          name,
          type,
          keys: keys.length === 0 ? 'none' : keys.map(({ id }) => id),
          permissions,
        })),
      );
    });

export const accessCommand = (io: Io): Command =>
  new Command('access')
    .description('show which Applications could do what at a moment, and with which keys')
    .addOption(tenantOption())
    .addOption(atOption())
    .addOption(jsonOption())
    .action(access(io));
