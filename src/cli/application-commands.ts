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
  commandGroup,
  moment,
  tenantOption,
  typeOption,
  uuid,
  yesOption,
} from './arguments';
import { confirmedDeletion } from './confirmation';
import { applicationIfThere, applicationsOf, knownApplication, knownTenant } from './lookups';
import { sessionCommand } from './operator-session';
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

const create = (): Command =>
  sessionCommand(
    'create',
    'create an Application with its first key, which is shown once',
    async (session, options: CreateOptions) => {
      const { tenant, id = randomUUID(), name, type, permission = [], expires } = options;
      const { key, input } = newKey(tenant, expires);
      const decide = createApplication({
        applicationId: id,
        name,
        type,
        permissions: permission,
        key: input,
      });
      const written = mustBeActive(await session.write(tenant, decide, options.actor));
      const { permissions } = mustHave(written, id);
      const view = { tenant_id: tenant, application_id: id, name, type, permissions };
      printOne({ ...view, key_id: input.keyId, expires_at: expires ?? null, key }, options);
    },
  )
    .addOption(tenantOption())
    .requiredOption('--name <name>', 'its name, 1 to 200 characters')
    .addOption(typeOption().makeOptionMandatory())
    .addOption(new Option('--id <uuid>', 'its id (default: a random one)').argParser(uuid))
    .addOption(permissionOption())
    .addOption(new Option('--expires <time>', 'when its key expires (default: never)').argParser(moment))
    .addOption(actorOption());

const list = (): Command =>
  sessionCommand('list', 'list the Applications of a tenant', async (session, options: Common) => {
    await session.upToDate();
    await knownTenant(session, options.tenant);
    const rows = await applicationsOf(session, options.tenant);
    printMany(rows.map(viewOf), options, `Tenant ${options.tenant} has no Applications.`);
  }).addOption(tenantOption());

const show = (): Command =>
  sessionCommand('show', 'show one Application', async (session, id: string, options: Common) => {
    await session.upToDate();
    printOne(viewOf(await knownApplication(session, options.tenant, id)), options);
  })
    .argument('<application-id>', 'the Application', uuid)
    .addOption(tenantOption());

/** Changes an Application and shows it as decided: the read models may be behind. */
const changing = <Options extends Common>(
  name: string,
  description: string,
  decide: (id: string, options: Options) => Decide,
): Command =>
  sessionCommand(name, description, async (session, id: string, options: Options) => {
    const { tenant, actor } = options;
    const written = mustBeActive(await session.write(tenant, decide(id, options), actor));
    const { name: newName, type, permissions } = mustHave(written, id);
    const created_at = (await applicationIfThere(session, tenant, id))?.created_at ?? null;
    printOne({ application_id: id, name: newName, type, status: 'active', created_at, permissions }, options);
  })
    .argument('<application-id>', 'the Application', uuid)
    .addOption(tenantOption())
    .addOption(actorOption());

const rename = (): Command =>
  changing('rename', 'give an Application another name', (id, { name }: Common & { readonly name: string }) =>
    renameApplication(id, name),
  ).requiredOption('--name <name>', 'its new name');

const changePermissions = (): Command =>
  changing(
    'set-permissions',
    'set the permissions of an Application; those not named are removed',
    (id, { permission = [] }: Common & { readonly permission?: readonly string[] }) =>
      setPermissions(id, permission),
  ).addOption(permissionOption());

const remove = (): Command =>
  sessionCommand(
    'delete',
    'delete an Application and its keys',
    async (session, id: string, options: Common & { readonly yes?: boolean }) => {
      const { name } = mustHave(mustBeActive(await session.stateOf(options.tenant)), id);
      const what = `delete the Application ${id} ${JSON.stringify(name)} and its keys`;
      if (!(await confirmedDeletion(what, options))) return;
      await session.write(options.tenant, deleteApplication(id), options.actor);
      printOne({ application_id: id, status: 'deleted' }, options);
    },
  )
    .argument('<application-id>', 'the Application', uuid)
    .addOption(tenantOption())
    .addOption(yesOption())
    .addOption(actorOption());

export const applicationCommands = (): Command =>
  commandGroup('application', 'create, list, show, change and delete Applications', [
    create(),
    list(),
    show(),
    rename(),
    changePermissions(),
    remove(),
  ]);
