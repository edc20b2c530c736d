import { randomUUID } from 'node:crypto';
import { Command, Option } from 'commander';
import { changePlan, createTenant, deleteTenant, mustBeActive, type ActiveTenant } from '../domain/tenant';
import { fault } from '../fault';
import { findTenant, type TenantDocument } from '../../projections/tenants';
import { actorOption, jsonOption, uuid, wholeNumber, yesOption } from './arguments';
import { mayEnd } from './confirmation';
import { atDesk, type Desk } from './desk';
import { collectedFrom, documentsOf } from './documents';
import { counted, printMany, printOne, visible } from './output';

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

export const allTenants = ({ app }: Pick<Desk, 'app'>): AsyncIterable<TenantDocument> =>
  documentsOf<TenantDocument>(app.projecting.reader('tenants'), 'tenants');

/** The tenant as the read models know it, deleted or not. */
export const knownTenant = async ({ app }: Pick<Desk, 'app'>, tenantId: string): Promise<TenantDocument> => {
  const tenant = await findTenant(app.projecting.reader('tenants'), tenantId);
  if (tenant === undefined) throw fault('tenant_not_found', `There is no tenant ${tenantId}.`);
  return tenant;
};

/** What fits on a line: the rest is in --json and `tenant show`. */
const LONGEST_NAME = 28;
const shortened = (name: string): string =>
  name.length <= LONGEST_NAME ? name : `${name.slice(0, LONGEST_NAME - 1)}…`;

const rowOf = ({ tenant_id, name, status, created_at }: ReturnType<typeof viewOf>) => ({
  tenant_id,
  name: shortened(visible(name)),
  status,
  created_at,
});

/** The same view from the decision itself: the read models may be behind. */
const viewOfState = (tenant: ActiveTenant) => ({
  tenant_id: tenant.id,
  name: tenant.name,
  status: 'active',
  owner_id: tenant.ownerId,
  fingerprint_tokens: tenant.settings.fingerprintTokens,
  deduplicate_tokens: tenant.settings.deduplicateTokens,
  included_monthly_active_tokens: tenant.includedMonthlyActiveTokens,
  created_at: tenant.created.at,
  modified_at: tenant.modified?.at ?? null,
  deleted_at: null,
});

interface CreateOptions {
  readonly name: string;
  readonly id?: string;
  readonly owner?: string;
  readonly includedTokens: number;
  readonly actor?: string;
  readonly json?: boolean;
}

const MAKES_DATA = { makesData: true };

const create = (options: CreateOptions): Promise<void> =>
  atDesk(async (desk) => {
    const tenantId = options.id ?? randomUUID();
    const { name, owner = desk.configuration.OPERATOR_ID, includedTokens } = options;
    const wish = { name, ownerId: owner, includedMonthlyActiveTokens: includedTokens };
    await desk.write(tenantId, createTenant(wish), options.actor);
    const view = {
      tenant_id: tenantId,
      name,
      owner_id: owner,
      included_monthly_active_tokens: includedTokens,
    };
    printOne(view, options);
  }, MAKES_DATA);

interface DeleteOptions {
  readonly yes?: boolean;
  readonly actor?: string;
  readonly json?: boolean;
}

const remove = async (desk: Desk, tenantId: string, options: DeleteOptions): Promise<void> => {
  const { name, applications } = mustBeActive(await desk.stateOf(tenantId));
  const what = `delete the tenant ${tenantId} ${JSON.stringify(name)} with ${counted(applications.size, 'Application')} and every key`;
  if (!(await mayEnd(what, options))) return;
  await desk.write(tenantId, deleteTenant(), options.actor);
  printOne({ tenant_id: tenantId, status: 'deleted' }, options);
};

export const tenantCommands = (): Command => {
  const tenant = new Command('tenant').description('make, list, show, change and delete tenants');
  tenant
    .command('create')
    .description('create a tenant')
    .requiredOption('--name <name>', 'its name, 1 to 200 characters')
    .addOption(new Option('--id <uuid>', 'its id (default: a random one)').argParser(uuid))
    .addOption(new Option('--owner <uuid>', 'its owner (default: OPERATOR_ID)').argParser(uuid))
    .option('--included-tokens <n>', 'monthly active tokens that its plan includes', wholeNumber, 0)
    .addOption(actorOption())
    .addOption(jsonOption())
    .action(create);
  tenant
    .command('list')
    .description('list all tenants, deleted ones too')
    .addOption(jsonOption())
    .action((options: { json?: boolean }) =>
      atDesk(async (desk) => {
        await desk.upToDate();
        const rows = (await collectedFrom(allTenants(desk))).map(viewOf);
        printMany(
          options.json === true ? rows : rows.map(rowOf),
          options,
          'There are no tenants. Make one with: tenant-ledger tenant create --name NAME',
        );
      }),
    );
  tenant
    .command('show')
    .description('show one tenant')
    .argument('<tenant-id>', 'the tenant', uuid)
    .addOption(jsonOption())
    .action((tenantId: string, options: { json?: boolean }) =>
      atDesk(async (desk) => {
        await desk.upToDate();
        printOne(viewOf(await knownTenant(desk, tenantId)), options);
      }),
    );
  tenant
    .command('set-plan')
    .description('change the number of monthly active tokens that the plan includes')
    .argument('<tenant-id>', 'the tenant', uuid)
    .requiredOption('--included-tokens <n>', 'monthly active tokens', wholeNumber)
    .addOption(actorOption())
    .addOption(jsonOption())
    .action((tenantId: string, options: { includedTokens: number; actor?: string; json?: boolean }) =>
      atDesk(async (desk) => {
        const changed = await desk.write(tenantId, changePlan(options.includedTokens), options.actor);
        printOne(viewOfState(mustBeActive(changed)), options);
      }),
    );
  tenant
    .command('delete')
    .description('delete a tenant and with it every key; its history stays')
    .argument('<tenant-id>', 'the tenant', uuid)
    .addOption(yesOption())
    .addOption(actorOption())
    .addOption(jsonOption())
    .action((tenantId: string, options: DeleteOptions) => atDesk((desk) => remove(desk, tenantId, options)));
  return tenant;
};
