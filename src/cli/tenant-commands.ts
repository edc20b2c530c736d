import type { Command } from 'commander';
import { randomUUID } from 'node:crypto';
import { documentOfTenant, type TenantDocument } from '../../projections/tenants';
import { changePlan, createTenant, deleteTenant, mustBeActive } from '../domain/tenant';
import { commandGroup, option, uuid, wholeNumber } from './arguments';
import type { ActorOptions, JsonOption, YesOption } from './arguments';
import { confirmedIrreversible } from './confirmation';
import type { Io } from './io';
import { allTenants, knownTenant } from './lookups';
import { counted, printMany, printOne, shortened } from './output';
import { sessionCommand, type OperatorSession } from './session';

const viewOf = (tenant: TenantDocument) => ({
  tenant_id: tenant.id,
  name: tenant.name,
  status: tenant.deleted_at === undefined ? 'active' : 'deleted',
  owner_id: tenant.owner_id,
  fingerprint_tokens: tenant.settings.fingerprint_tokens,
  deduplicate_tokens: tenant.settings.deduplicate_tokens,
  included_monthly_active_tokens: tenant.included_monthly_active_tokens,
  created_at: tenant.created_at,
  modified_at: tenant.modified_at ?? null,
  deleted_at: tenant.deleted_at ?? null,
});

const rowOf = ({ tenant_id, name, status, created_at }: ReturnType<typeof viewOf>) => {
  return { tenant_id, name: shortened(name), status, created_at };
};

interface PlanOptions extends ActorOptions {
  readonly includedTokens: number;
}
interface CreateOptions extends PlanOptions {
  readonly name: string;
  readonly id?: string;
  readonly owner?: string;
}

const createIn = async (session: OperatorSession, options: CreateOptions): Promise<void> => {
  const { id: tenant_id = randomUUID(), name, owner = session.configuration.OPERATOR_ID } = options;
  const included = options.includedTokens;
  const input = { name, ownerId: owner, includedMonthlyActiveTokens: included };
  await session.write(tenant_id, createTenant(input), options.actor);
  const view = { tenant_id, name, owner_id: owner, included_monthly_active_tokens: included };
  printOne(session.io, view, options);
};

const create = (io: Io): Command =>
  sessionCommand(io, 'create', createIn, 'create')
    .description('create a tenant')
    .requiredOption('--name <name>', 'its name, 1 to 200 characters')
    .option('--id <uuid>', 'its id (default: a random one)', uuid)
    .option('--owner <uuid>', 'its owner (default: OPERATOR_ID)', uuid)
    .option('--included-tokens <n>', 'monthly active tokens that its plan includes', wholeNumber(), 0)
    .addOption(option.actor());

const list = (io: Io): Command =>
  sessionCommand(io, 'list', async (session, options: JsonOption) => {
    await session.upToDate();
    const rows = (await allTenants(session)).map(viewOf);
    const none = 'There are no tenants. Create one with: tenant-ledger tenant create --name NAME';
    printMany(io, options.json === true ? rows : rows.map(rowOf), options, none);
  }).description('list all tenants, including deleted ones');

const show = (io: Io): Command =>
  sessionCommand(io, 'show', async (session, tenantId: string, options: JsonOption) => {
    await session.upToDate();
    printOne(io, viewOf(await knownTenant(session, tenantId)), options);
  })
    .description('show one tenant')
    .argument('<tenant-id>', 'the tenant', uuid);

const setPlan = (io: Io): Command =>
  sessionCommand(io, 'set-plan', async (session, tenantId: string, options: PlanOptions) => {
    const changed = await session.write(tenantId, changePlan(options.includedTokens), options.actor);
    printOne(io, viewOf(documentOfTenant(mustBeActive(changed))), options);
  })
    .description('change the number of monthly active tokens that the plan includes')
    .argument('<tenant-id>', 'the tenant', uuid)
    .requiredOption('--included-tokens <n>', 'monthly active tokens', wholeNumber())
    .addOption(option.actor());

const remove = (io: Io): Command =>
  sessionCommand(io, 'delete', async (session, tenantId: string, options: ActorOptions & YesOption) => {
    const what = await session.ask(tenantId, (tenant) => {
      const { name, applications } = mustBeActive(tenant);
      return `delete the tenant ${tenantId} ${JSON.stringify(name)} with ${counted(applications.size, 'Application')} and every key`;
    });
    if (!(await confirmedIrreversible(io, what, options))) return;
    await session.write(tenantId, deleteTenant(), options.actor);
    printOne(io, { tenant_id: tenantId, status: 'deleted' }, options);
  })
    .description('delete a tenant and all its keys; its history is kept')
    .argument('<tenant-id>', 'the tenant', uuid)
    .addOption(option.yes())
    .addOption(option.actor());

const TENANTS = 'create, list, show, change and delete tenants';
export const tenantCommands = commandGroup('tenant', TENANTS, [create, list, show, setPlan, remove]);
