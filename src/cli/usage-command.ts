import { Option, type Command } from 'commander';
import type { TenantDocument } from '../../projections/tenants';
import { monthOf, usageByMonth } from '../../projections/usage';
import { isoNow } from '../async/clock';
import { settleAll } from '../async/concurrency';
import { csvText } from '../csv';
import { isMonth } from '../domain/texts';
import { parser, type JsonOption } from './arguments';
import { FAILED } from './failure';
import type { Io } from './io';
import { allTenants } from './lookups';
import { notice, printMany, shortened } from './output';
import { withProgress } from './progress';
import { sessionCommand, type OperatorSession } from './session';

interface Options extends JsonOption {
  readonly csv?: boolean;
  readonly month?: string;
}

/** Tenants whose usage is read at a time. */
const AT_ONCE = 50;

const OF_TENANT = ['tenant_id', 'name', 'status', 'deleted_at'] as const;
const COLUMNS = [...OF_TENANT, 'month', 'monthly_active_tokens', 'included_monthly_active_tokens'] as const;

const usageOf = async ({ io, app }: OperatorSession, tenants: readonly TenantDocument[], month: string) => {
  const { set } = await app.live.look();
  const viewOf = async ({ id, name, deleted_at }: TenantDocument) => {
    const [usage] = await usageByMonth(set, id, month);
    return {
      tenant_id: id,
      name,
      status: deleted_at === undefined ? 'active' : 'deleted',
      deleted_at: deleted_at ?? null,
      month,
      monthly_active_tokens: usage?.monthly_active_tokens ?? 0,
      included_monthly_active_tokens: usage?.included_monthly_active_tokens ?? 0,
    };
  };
  const views: Awaited<ReturnType<typeof viewOf>>[] = [];
  await withProgress(io, 'Reading:', async (line) => {
    for (let at = 0; at < tenants.length; at += AT_ONCE) {
      views.push(...(await settleAll(tenants.slice(at, at + AT_ONCE).map(viewOf))));
      line.show(`${views.length} of ${tenants.length} tenants`);
    }
  });
  return views;
};

/** Nobody should be billed by numbers that are not complete. */
const noticeParked = async ({ io, app }: OperatorSession): Promise<void> => {
  const { parkedTenants } =
    require('../projecting/parked-tenants') as typeof import('../projecting/parked-tenants');
  for await (const { tenant_id } of parkedTenants((await app.live.look()).set)) {
    io.exitCode = FAILED;
    notice(io, `The usage of tenant ${tenant_id} is incomplete, because it is parked: tenant-ledger status`);
  }
};

const run = async (session: OperatorSession, options: Options): Promise<void> => {
  const { io } = session;
  const { month = monthOf(isoNow()), csv, json } = options;
  if (!(await session.upToDate())) io.exitCode = FAILED;
  const views = await usageOf(session, await allTenants(session), month);
  await noticeParked(session);
  const cells = () => views.map((view) => COLUMNS.map((column) => view[column]));
  if (csv === true) return void io.stdout.write(csvText([COLUMNS, ...cells()]));
  if (json !== true)
    notice(io, `Tokens active in ${month} (UTC), and how many the plan included at its end:`);
  const rows = views.map((view) => ({
    tenant_id: view.tenant_id,
    name: shortened(view.name),
    status: view.status,
    active: view.monthly_active_tokens,
    included: view.included_monthly_active_tokens,
  }));
  printMany(io, json === true ? views : rows, options, 'There are no tenants.');
};

const monthArgument = parser('It must be a month like 2026-01.', (text) =>
  isMonth(text) ? text : undefined,
);

export const usageCommand = (io: Io): Command =>
  sessionCommand(io, 'usage', run)
    .description(
      'show how many tokens were active in a month, of all tenants, deleted ones too; exit code 1 if a tenant is parked, or not everything is counted yet',
    )
    .option('--month <month>', 'a month of UTC like 2026-01 (default: the current one)', monthArgument)
    .addOption(new Option('--csv', 'print CSV on stdout').conflicts('json'));
