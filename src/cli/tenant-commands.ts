import { randomUUID } from 'node:crypto';
import { Command, Option } from 'commander';
import { changePlan, createTenant, deleteTenant, mustBeActive, type ActiveTenant } from '../domain/tenant';
import { refusal } from '../domain/refusal';
import { findTenant, type TenantDocument } from '../../projections/tenants';
import { actorOption, jsonOption, uuid, wholeNumber } from './arguments';
import { atDesk, type Desk } from './desk';
import { printMany, printOne } from './output';

const PAGE = 500;

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

export async function* allTenants({ app }: Pick<Desk, 'app'>): AsyncGenerator<TenantDocument> {
  const reader = app.projecting.reader('tenants');
  let after: { tenantId: string; key: string } | undefined;
  do {
    const page: Awaited<ReturnType<typeof reader.scan>> = await reader.scan('tenants', PAGE, after);
    for (const { document } of page) yield document as unknown as TenantDocument;
    after = page.at(-1);
  } while (after !== undefined);
}

/** The tenant as the read models know it, deleted or not. */
export const knownTenant = async ({ app }: Pick<Desk, 'app'>, tenantId: string): Promise<TenantDocument> => {
  const tenant = await findTenant(app.projecting.reader('tenants'), tenantId);
  if (tenant === undefined) throw refusal('tenant_not_found', `There is no tenant ${tenantId}.`);
  return tenant;
};

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
  });

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
        const rows = [];
        for await (const one of allTenants(desk)) rows.push(viewOf(one));
        printMany(
          rows,
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
    .addOption(actorOption())
    .addOption(jsonOption())
    .action((tenantId: string, options: { actor?: string; json?: boolean }) =>
      atDesk(async (desk) => {
        await desk.write(tenantId, deleteTenant(), options.actor);
        printOne({ tenant_id: tenantId, status: 'deleted' }, options);
      }),
    );
  return tenant;
};
