import { Command, Option } from 'commander';
import { randomUUID } from 'node:crypto';
import type { StoredApplication } from '../../projections/applications';
import { MAX_GRACE_SECONDS, regenerateKey } from '../domain/application-keys';
import { createApplication, deleteApplication, updateApplication } from '../domain/applications';
import { permissionsOf } from '../domain/authority';
import type { ApplicationType } from '../domain/permissions';
import { mustBeActive, mustHave, type Decide } from '../domain/tenant';
import { newKey } from '../ledger/api-key';
import { collected, commandGroup, moment, option, uuid, wholeNumber } from './arguments';
import type { TenantOptions, YesOption } from './arguments';
import { confirmedIrreversible } from './confirmation';
import type { Io } from './io';
import { applicationsOf, keyViewsOf, knownApplication, type KeyView } from './lookups';
import { printJson, printMany, printOne, printRecord, printTable } from './output';
import { sessionCommand } from './session';

const viewOf = ({ id, name, type, permissions, ...more }: StoredApplication) => ({
  application_id: id,
  name,
  type,
  status: more.deleted_at === undefined ? 'active' : 'deleted',
  created_at: more.created_at,
  permissions,
  may_also_hold: permissionsOf(type)
    .map((permission) => permission.type)
    .filter((permission) => !permissions.includes(permission)),
});

/** The number of keys that can be used, and when any of its keys was last used. */
const keySummary = (keys: readonly KeyView[]) => ({
  live_keys: keys.filter(({ status }) => status === 'active').length,
  last_used_at:
    keys.flatMap(({ last_used_at: at }) => at ?? []).reduce((a, b) => (a > b ? a : b), '') || null,
});

const permissionOption = (): Option =>
  new Option('--permission <name>', 'a permission; may be given several times').argParser(collected);

interface CreateOptions extends TenantOptions {
  readonly name: string;
  readonly type: ApplicationType;
  readonly id?: string;
  readonly permission?: readonly string[];
  readonly expires?: string;
}

const create = (io: Io): Command =>
  sessionCommand(io, 'create', async (session, options: CreateOptions) => {
    const { tenant, id = randomUUID(), name, type, permission = [], expires } = options;
    const { key, input } = newKey(tenant, { expiresAt: expires });
    const decide = createApplication({ applicationId: id, name, type, permissions: permission, key: input });
    const written = mustBeActive(await session.write(tenant, decide, options.actor));
    const { permissions } = mustHave(written, id);
    const view = { tenant_id: tenant, application_id: id, name, type, permissions };
    printOne(io, { ...view, key_id: input.keyId, expires_at: expires ?? null, key }, options);
  })
    .description('create an Application with its first key, which is shown once')
    .addOption(option.tenant())
    .requiredOption('--name <name>', 'its name, 1 to 200 characters')
    .addOption(option.type().makeOptionMandatory())
    .option('--id <uuid>', 'its id (default: a random one)', uuid)
    .addOption(permissionOption())
    .option('--expires <time>', 'when its key expires (default: never)', moment)
    .addOption(option.actor());

const list = (io: Io): Command =>
  sessionCommand(io, 'list', async (session, options: TenantOptions) => {
    await session.upToDate();
    const tenantKeys = await keyViewsOf(session, options.tenant);
    const rows = (await applicationsOf(session, options.tenant)).map((application) => {
      const { permissions, may_also_hold, ...view } = viewOf(application);
      const keys = tenantKeys.filter(({ application_id }) => application_id === application.id);
      return { ...view, ...keySummary(keys), permissions, may_also_hold };
    });
    printMany(io, rows, options, `Tenant ${options.tenant} has no Applications.`);
  })
    .description('list the Applications of a tenant')
    .addOption(option.tenant());

const show = (io: Io): Command =>
  sessionCommand(io, 'show', async (session, id: string, options: TenantOptions) => {
    await session.upToDate();
    const view = viewOf(await knownApplication(session, options.tenant, id));
    const tenantKeys = await keyViewsOf(session, options.tenant);
    const keys = tenantKeys.filter(({ application_id }) => application_id === id);
    if (options.json === true) return printJson(io, { ...view, keys });
    printRecord(io, view);
    printTable(io, keys);
  })
    .description('show one Application')
    .argument('<application-id>', 'the Application', uuid)
    .addOption(option.tenant());

interface UpdateOptions extends TenantOptions {
  readonly name?: string;
  readonly permission?: readonly string[];
}

/** Changes an Application and prints it as decided, since the read models may be behind. */
const changing = (io: Io, name: string, decide: (id: string, options: UpdateOptions) => Decide): Command =>
  sessionCommand(io, name, async (session, id: string, options: UpdateOptions) => {
    const { tenant, actor } = options;
    const written = mustBeActive(await session.write(tenant, decide(id, options), actor));
    const { name: newName, type, created_at, permissions } = mustHave(written, id);
    const view = { application_id: id, name: newName, type, status: 'active', created_at };
    printOne(io, { ...view, permissions }, options);
  })
    .argument('<application-id>', 'the Application', uuid)
    .addOption(option.tenant())
    .addOption(option.actor());

const rename = (io: Io): Command =>
  changing(io, 'rename', (id, { name }) => updateApplication(id, { name }))
    .description('give an Application another name')
    .requiredOption('--name <name>', 'its new name');

const changePermissions = (io: Io): Command =>
  changing(io, 'set-permissions', (id, { permission: permissions = [] }) =>
    updateApplication(id, { permissions }),
  )
    .description('set the permissions of an Application; those not named are removed')
    .addOption(permissionOption());

interface RegenerateOptions extends TenantOptions {
  readonly grace: number;
  readonly expires?: string;
}

const regenerate = (io: Io): Command =>
  sessionCommand(io, 'regenerate', async (session, id: string, options: RegenerateOptions) => {
    const { tenant, expires, grace } = options;
    const { key, input } = newKey(tenant, { expiresAt: expires });
    await session.write(tenant, regenerateKey(id, input, grace), options.actor);
    const view = { application_id: id, key_id: input.keyId, expires_at: expires ?? null };
    printOne(io, { ...view, grace_seconds: grace, key }, options);
  })
    .description('add a key, which is shown once, and end all other keys of the Application')
    .argument('<application-id>', 'the Application', uuid)
    .addOption(option.tenant())
    .addOption(
      new Option('--grace <seconds>', 'how long the other keys keep working, at most a year')
        .argParser(wholeNumber(0, MAX_GRACE_SECONDS, `at most ${MAX_GRACE_SECONDS}, a year`))
        .default(0, 'they end at once'),
    )
    .option('--expires <time>', 'when the new key expires (default: never)', moment)
    .addOption(option.actor());

const remove = (io: Io): Command =>
  sessionCommand(io, 'delete', async (session, id: string, options: TenantOptions & YesOption) => {
    const { name } = await session.ask(options.tenant, (tenant) => mustHave(mustBeActive(tenant), id));
    const what = `delete the Application ${id} ${JSON.stringify(name)} and its keys`;
    if (!(await confirmedIrreversible(io, what, options))) return;
    await session.write(options.tenant, deleteApplication(id), options.actor);
    printOne(io, { application_id: id, status: 'deleted' }, options);
  })
    .description('delete an Application and its keys')
    .argument('<application-id>', 'the Application', uuid)
    .addOption(option.tenant())
    .addOption(option.yes())
    .addOption(option.actor());

export const applicationCommands = commandGroup(
  'application',
  'create, list, show, change and delete Applications, and replace their keys',
  [create, list, show, rename, changePermissions, regenerate, remove],
);
