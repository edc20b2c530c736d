import { randomUUID } from 'node:crypto';
import { Command, Option } from 'commander';
import type { TenantDocument } from '../../projections/tenants';
import { changePlan, createTenant, deleteTenant, mustBeActive, type ActiveTenant } from '../domain/tenant';
import { actorOption, jsonOption, uuid, wholeNumber, yesOption } from './arguments';
import { confirmedDeletion } from './confirmation';
import { allTenants, knownTenant } from './lookups';
import { inSession, type OperatorSession } from './operator-session';
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

interface Format {
  readonly json?: boolean;
}

interface Common extends Format {
  readonly actor?: string;
}

interface CreateOptions extends Common {
  readonly name: string;
  readonly id?: string;
  readonly owner?: string;
  readonly includedTokens: number;
}

const create = (options: CreateOptions): Promise<void> =>
  inSession(
    async (session) => {
      const tenantId = options.id ?? randomUUID();
      const { name, owner = session.configuration.OPERATOR_ID, includedTokens } = options;
      const input = { name, ownerId: owner, includedMonthlyActiveTokens: includedTokens };
      await session.write(tenantId, createTenant(input), options.actor);
      printOne(
        {
          tenant_id: tenantId,
          name,
          owner_id: owner,
          included_monthly_active_tokens: includedTokens,
        },
        options,
      );
    },
    { createsData: true },
  );

const createCommand = (): Command =>
  new Command('create')
    .description('create a tenant')
    .requiredOption('--name <name>', 'its name, 1 to 200 characters')
    .addOption(new Option('--id <uuid>', 'its id (default: a random one)').argParser(uuid))
    .addOption(new Option('--owner <uuid>', 'its owner (default: OPERATOR_ID)').argParser(uuid))
    .option('--included-tokens <n>', 'monthly active tokens that its plan includes', wholeNumber, 0)
    .addOption(actorOption())
    .addOption(jsonOption())
    .action(create);

const list = async (session: OperatorSession, options: Format): Promise<void> => {
  await session.upToDate();
  const rows = [];
  for await (const tenant of allTenants(session)) rows.push(viewOf(tenant));
  printMany(
    options.json === true ? rows : rows.map(rowOf),
    options,
    'There are no tenants. Create one with: tenant-ledger tenant create --name NAME',
  );
};

const listCommand = (): Command =>
  new Command('list')
    .description('list all tenants, deleted ones too')
    .addOption(jsonOption())
    .action((options: Format) => inSession((session) => list(session, options)));

const show = async (session: OperatorSession, tenantId: string, options: Format): Promise<void> => {
  await session.upToDate();
  printOne(viewOf(await knownTenant(session, tenantId)), options);
};

const showCommand = (): Command =>
  new Command('show')
    .description('show one tenant')
    .argument('<tenant-id>', 'the tenant', uuid)
    .addOption(jsonOption())
    .action((tenantId: string, options: Format) => inSession((session) => show(session, tenantId, options)));

interface PlanOptions extends Common {
  readonly includedTokens: number;
}

const setPlan = async (session: OperatorSession, tenantId: string, options: PlanOptions): Promise<void> => {
  const changed = await session.write(tenantId, changePlan(options.includedTokens), options.actor);
  printOne(viewOfState(mustBeActive(changed)), options);
};

const setPlanCommand = (): Command =>
  new Command('set-plan')
    .description('change the number of monthly active tokens that the plan includes')
    .argument('<tenant-id>', 'the tenant', uuid)
    .requiredOption('--included-tokens <n>', 'monthly active tokens', wholeNumber)
    .addOption(actorOption())
    .addOption(jsonOption())
    .action((tenantId: string, options: PlanOptions) =>
      inSession((session) => setPlan(session, tenantId, options)),
    );

interface DeleteOptions extends Common {
  readonly yes?: boolean;
}

const remove = async (session: OperatorSession, tenantId: string, options: DeleteOptions): Promise<void> => {
  const { name, applications } = mustBeActive(await session.stateOf(tenantId));
  const what = `delete the tenant ${tenantId} ${JSON.stringify(name)} with ${counted(applications.size, 'Application')} and every key`;
  if (!(await confirmedDeletion(what, options))) return;
  await session.write(tenantId, deleteTenant(), options.actor);
  printOne({ tenant_id: tenantId, status: 'deleted' }, options);
};

const deleteCommand = (): Command =>
  new Command('delete')
    .description('delete a tenant and every key of it; its history stays')
    .argument('<tenant-id>', 'the tenant', uuid)
    .addOption(yesOption())
    .addOption(actorOption())
    .addOption(jsonOption())
    .action((tenantId: string, options: DeleteOptions) =>
      inSession((session) => remove(session, tenantId, options)),
    );

export const tenantCommands = (): Command =>
  new Command('tenant')
    .description('create, list, show, change and delete tenants')
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(setPlanCommand())
    .addCommand(deleteCommand());
