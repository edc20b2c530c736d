import { randomUUID } from 'node:crypto';
import { Command, Option } from 'commander';
import type { ApplicationDocument } from '../../projections/applications';
import { newKey } from '../app/operator';
import {
  createApplication,
  deleteApplication,
  mustHave,
  renameApplication,
  setPermissions,
} from '../domain/applications';
import type { ApplicationType } from '../domain/permissions';
import { mustBeActive, type Decide } from '../domain/tenant';
import {
  actorOption,
  collected,
  jsonOption,
  moment,
  tenantOption,
  typeOption,
  uuid,
  yesOption,
} from './arguments';
import { confirmedDeletion } from './confirmation';
import { applicationIfThere, applicationsOf, knownApplication, knownTenant } from './lookups';
import { inSession, type OperatorSession } from './operator-session';
import { printMany, printOne } from './output';

interface Common {
  readonly tenant: string;
  readonly actor?: string;
  readonly json?: boolean;
}

const viewOf = (application: ApplicationDocument) => ({
  application_id: application.id,
  name: application.name,
  type: application.type,
  status: application.deleted_at === undefined ? 'active' : 'deleted',
  created_at: application.created_at,
  permissions: application.permissions,
});

const permissionOption = (): Option =>
  new Option('--permission <name>', 'a permission; may be given several times').argParser(collected);

interface CreateOptions extends Common {
  readonly name: string;
  readonly type: ApplicationType;
  readonly id?: string;
  readonly permission?: readonly string[];
  readonly expires?: string;
}

const create = async (session: OperatorSession, options: CreateOptions): Promise<void> => {
  const { tenant, name, type, permission = [] } = options;
  const applicationId = options.id ?? randomUUID();
  const { key, input } = newKey(tenant, options.expires);
  const decide = createApplication({ applicationId, name, type, permissions: permission, key: input });
  const written = mustBeActive(await session.write(tenant, decide, options.actor));
  const { permissions } = mustHave(written, applicationId);
  const view = { tenant_id: tenant, application_id: applicationId, name, type, permissions };
  printOne({ ...view, key_id: input.keyId, expires_at: options.expires ?? null, key }, options);
};

const createCommand = (): Command =>
  new Command('create')
    .description('create an Application with its first key, which is shown once')
    .addOption(tenantOption())
    .requiredOption('--name <name>', 'its name, 1 to 200 characters')
    .addOption(typeOption().makeOptionMandatory())
    .addOption(new Option('--id <uuid>', 'its id (default: a random one)').argParser(uuid))
    .addOption(permissionOption())
    .addOption(new Option('--expires <time>', 'when its key expires (default: never)').argParser(moment))
    .addOption(actorOption())
    .addOption(jsonOption())
    .action((options: CreateOptions) => inSession((session) => create(session, options)));

const list = async (session: OperatorSession, options: Common): Promise<void> => {
  await session.upToDate();
  await knownTenant(session, options.tenant);
  const rows = await applicationsOf(session, options.tenant);
  printMany(rows.map(viewOf), options, `Tenant ${options.tenant} has no Applications.`);
};

const listCommand = (): Command =>
  new Command('list')
    .description('list the Applications of a tenant')
    .addOption(tenantOption())
    .addOption(jsonOption())
    .action((options: Common) => inSession((session) => list(session, options)));

const show = async (session: OperatorSession, id: string, options: Common): Promise<void> => {
  await session.upToDate();
  printOne(viewOf(await knownApplication(session, options.tenant, id)), options);
};

const showCommand = (): Command =>
  new Command('show')
    .description('show one Application')
    .argument('<application-id>', 'the Application', uuid)
    .addOption(tenantOption())
    .addOption(jsonOption())
    .action((id: string, options: Common) => inSession((session) => show(session, id, options)));

/** Changes an Application and shows it as decided: the read models may be behind. */
const change = (id: string, options: Common, decide: Decide): Promise<void> =>
  inSession(async (session) => {
    const { tenant: tenantId, actor } = options;
    const written = mustBeActive(await session.write(tenantId, decide, actor));
    const { name, type, permissions } = mustHave(written, id);
    const created_at = (await applicationIfThere(session, tenantId, id))?.created_at ?? null;
    printOne({ application_id: id, name, type, status: 'active', created_at, permissions }, options);
  });

const renameCommand = (): Command =>
  new Command('rename')
    .description('give an Application another name')
    .argument('<application-id>', 'the Application', uuid)
    .addOption(tenantOption())
    .requiredOption('--name <name>', 'its new name')
    .addOption(actorOption())
    .addOption(jsonOption())
    .action((id: string, options: Common & { name: string }) =>
      change(id, options, renameApplication(id, options.name)),
    );

const setPermissionsCommand = (): Command =>
  new Command('set-permissions')
    .description('set the permissions of an Application; those not named are removed')
    .argument('<application-id>', 'the Application', uuid)
    .addOption(tenantOption())
    .addOption(permissionOption())
    .addOption(actorOption())
    .addOption(jsonOption())
    .action((id: string, options: Common & { permission?: readonly string[] }) =>
      change(id, options, setPermissions(id, options.permission ?? [])),
    );

interface DeleteOptions extends Common {
  readonly yes?: boolean;
}

const remove = async (session: OperatorSession, id: string, options: DeleteOptions): Promise<void> => {
  const { name } = mustHave(mustBeActive(await session.stateOf(options.tenant)), id);
  const what = `delete the Application ${id} ${JSON.stringify(name)} and its keys`;
  if (!(await confirmedDeletion(what, options))) return;
  await session.write(options.tenant, deleteApplication(id), options.actor);
  printOne({ application_id: id, status: 'deleted' }, options);
};

const deleteCommand = (): Command =>
  new Command('delete')
    .description('delete an Application and its keys')
    .argument('<application-id>', 'the Application', uuid)
    .addOption(tenantOption())
    .addOption(yesOption())
    .addOption(actorOption())
    .addOption(jsonOption())
    .action((id: string, options: DeleteOptions) => inSession((session) => remove(session, id, options)));

export const applicationCommands = (): Command =>
  new Command('application')
    .description('create, list, show, change and delete Applications')
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(renameCommand())
    .addCommand(setPermissionsCommand())
    .addCommand(deleteCommand());
