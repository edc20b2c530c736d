import { randomUUID } from 'node:crypto';
import { Command, Option } from 'commander';
import { newKey } from '../app/operator';
import {
  createApplication,
  deleteApplication,
  mustHave,
  renameApplication,
  setPermissions,
} from '../domain/applications';
import type { ApplicationType } from '../domain/permissions';
import { fault } from '../fault';
import { mustBeActive, type Decide } from '../domain/tenant';
import { findApplication, type ApplicationDocument } from '../../projections/applications';
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
import { mayEnd } from './confirmation';
import { atDesk, type Desk } from './desk';
import { collectedFrom, documentsOf } from './documents';
import { printMany, printOne } from './output';
import { knownTenant } from './tenant-commands';

const viewOf = (application: ApplicationDocument) => ({
  application_id: application.id,
  name: application.name,
  type: application.type,
  status: application.deleted_at === undefined ? 'active' : 'deleted',
  created_at: application.created_at,
  permissions: application.permissions,
});

const find = ({ app }: Desk, tenantId: string, id: string): Promise<ApplicationDocument | undefined> =>
  findApplication(app.projecting.reader('applications'), tenantId, id);

export const applicationsOf = (
  { app }: Pick<Desk, 'app'>,
  tenantId: string,
): Promise<readonly ApplicationDocument[]> =>
  collectedFrom(
    documentsOf<ApplicationDocument>(app.projecting.reader('applications'), 'applications', tenantId),
  );

/** The Application as the read models know it, deleted or not. */
export const knownApplication = async (
  desk: Desk,
  tenantId: string,
  id: string,
): Promise<ApplicationDocument> => {
  await knownTenant(desk, tenantId);
  const application = await find(desk, tenantId, id);
  if (application === undefined)
    throw fault('application_not_found', `Tenant ${tenantId} has no Application ${id}.`);
  return application;
};

/** Changes an Application and shows it as decided: the read models may be behind. */
const change = async (desk: Desk, id: string, options: Common, decide: Decide): Promise<void> => {
  const { tenant: tenantId, actor } = options;
  const application = mustHave(mustBeActive(await desk.write(tenantId, decide, actor)), id);
  const { name, type, permissions } = application;
  const created_at = (await find(desk, tenantId, id))?.created_at ?? null;
  printOne({ application_id: id, name, type, status: 'active', created_at, permissions }, options);
};

interface Common {
  readonly tenant: string;
  readonly actor?: string;
  readonly json?: boolean;
}

interface CreateOptions extends Common {
  readonly name: string;
  readonly type: ApplicationType;
  readonly id?: string;
  readonly permission?: readonly string[];
  readonly expires?: string;
}

const create = (options: CreateOptions): Promise<void> =>
  atDesk(async (desk) => {
    const { tenant, name, type, permission = [] } = options;
    const applicationId = options.id ?? randomUUID();
    const { key, input } = newKey(tenant, options.expires);
    const decide = createApplication({ applicationId, name, type, permissions: permission, key: input });
    const written = mustBeActive(await desk.write(tenant, decide, options.actor));
    const { permissions } = mustHave(written, applicationId);
    const view = { tenant_id: tenant, application_id: applicationId, name, type, permissions };
    printOne({ ...view, key_id: input.keyId, expires_at: options.expires ?? null, key }, options);
  });

const remove = async (desk: Desk, id: string, options: Common & { yes?: boolean }): Promise<void> => {
  const { name } = mustHave(mustBeActive(await desk.stateOf(options.tenant)), id);
  if (!(await mayEnd(`delete the Application ${id} ${JSON.stringify(name)} and its keys`, options))) return;
  await desk.write(options.tenant, deleteApplication(id), options.actor);
  printOne({ application_id: id, status: 'deleted' }, options);
};

const permissionOption = (): Option =>
  new Option('--permission <name>', 'a permission; may be given several times').argParser(collected);

export const applicationCommands = (): Command => {
  const application = new Command('application').description(
    'make, list, show, change and delete Applications',
  );
  application
    .command('create')
    .description('create an Application with its first key, which is shown once')
    .addOption(tenantOption())
    .requiredOption('--name <name>', 'its name, 1 to 200 characters')
    .addOption(typeOption().makeOptionMandatory())
    .addOption(new Option('--id <uuid>', 'its id (default: a random one)').argParser(uuid))
    .addOption(permissionOption())
    .addOption(new Option('--expires <time>', 'when its key expires (default: never)').argParser(moment))
    .addOption(actorOption())
    .addOption(jsonOption())
    .action(create);
  application
    .command('list')
    .description('list the Applications of a tenant')
    .addOption(tenantOption())
    .addOption(jsonOption())
    .action((options: Common) =>
      atDesk(async (desk) => {
        await desk.upToDate();
        await knownTenant(desk, options.tenant);
        const rows = await applicationsOf(desk, options.tenant);
        printMany(rows.map(viewOf), options, `Tenant ${options.tenant} has no Applications.`);
      }),
    );
  application
    .command('show')
    .description('show one Application')
    .argument('<application-id>', 'the Application', uuid)
    .addOption(tenantOption())
    .addOption(jsonOption())
    .action((id: string, options: Common) =>
      atDesk(async (desk) => {
        await desk.upToDate();
        printOne(viewOf(await knownApplication(desk, options.tenant, id)), options);
      }),
    );
  application
    .command('rename')
    .description('give an Application another name')
    .argument('<application-id>', 'the Application', uuid)
    .addOption(tenantOption())
    .requiredOption('--name <name>', 'its new name')
    .addOption(actorOption())
    .addOption(jsonOption())
    .action((id: string, options: Common & { name: string }) =>
      atDesk((desk) => change(desk, id, options, renameApplication(id, options.name))),
    );
  application
    .command('set-permissions')
    .description('set the permissions of an Application; those not named are taken away')
    .argument('<application-id>', 'the Application', uuid)
    .addOption(tenantOption())
    .addOption(permissionOption())
    .addOption(actorOption())
    .addOption(jsonOption())
    .action((id: string, options: Common & { permission?: readonly string[] }) =>
      atDesk((desk) => change(desk, id, options, setPermissions(id, options.permission ?? []))),
    );
  application
    .command('delete')
    .description('delete an Application and with it its keys')
    .argument('<application-id>', 'the Application', uuid)
    .addOption(tenantOption())
    .addOption(yesOption())
    .addOption(actorOption())
    .addOption(jsonOption())
    .action((id: string, options: Common & { yes?: boolean }) => atDesk((desk) => remove(desk, id, options)));
  return application;
};
