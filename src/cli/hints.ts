import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { App } from '../app/app';
import { settings, type Configuration } from '../configuration';
import { withoutSecrets } from '../app/log-address';
import type { TenantDocument } from '../../projections/tenants';
import { applicationsOf } from './application-commands';
import { visible } from './output';
import { allTenants } from './tenant-commands';

/** What an operator can do next, as commands that work where the server was started. */

/** The image holds no sources: whoever reads this is outside of the container. */
const isInImage = (): boolean => !existsSync(join(__dirname, '..', '..', '..', 'src'));

const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** Settings without which a command would work on other data, or in another name. */
const settingsOf = (configuration: Configuration): string => {
  const wanted = {
    DATA_DIR: configuration.DATA_DIR === settings.DATA_DIR.fallback ? '' : resolve(configuration.DATA_DIR),
    EVENTSTORE_URL: withoutSecrets(configuration.EVENTSTORE_URL),
    STREAM_PREFIX: configuration.STREAM_PREFIX,
    OPERATOR_ID: configuration.OPERATOR_ID === settings.OPERATOR_ID.fallback ? '' : configuration.OPERATOR_ID,
  };
  return Object.entries(wanted)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}=${quoted(value)} `)
    .join('');
};

const commandLine =
  (configuration: Configuration) =>
  (rest: string): string =>
    isInImage()
      ? `  docker compose exec service tenant-ledger ${rest}`
      : `  ${settingsOf(configuration)}npx tenant-ledger ${rest}`;

/** Enough to read and change the tenant, and to read its logs and its usage. */
const PERMISSIONS = ['tenant:read', 'tenant:update', 'log:read', 'report:read'];

const createApplication = (tenantId: string): string =>
  `application create --tenant ${tenantId} --name Management --type management ${PERMISSIONS.map((one) => `--permission ${one}`).join(' ')}`;

/** The only tenant that is not deleted; `none`, or `many` of them. */
const onlyTenant = async (app: App): Promise<TenantDocument | 'none' | 'many'> => {
  let only: TenantDocument | undefined;
  for await (const tenant of allTenants({ app })) {
    if (tenant.deleted_at !== undefined) continue;
    if (only !== undefined) return 'many';
    only = tenant;
  }
  return only ?? 'none';
};

export const howToMakeAKey = async (app: App, configuration: Configuration): Promise<string> => {
  const command = commandLine(configuration);
  const lines = (sentence: string, ...commands: readonly string[]): string =>
    [visible(sentence), '', ...commands.map(command)].join('\n');
  const tenant = await onlyTenant(app);
  if (tenant === 'none')
    return lines(
      'There is no tenant. Make one, and an Application with an API key, which is shown once:',
      'tenant create --name "My tenant"',
      createApplication('TENANT_ID'),
    );
  if (tenant === 'many')
    return lines(
      'Make another key for an Application of one of the tenants:',
      'tenant list',
      'application list --tenant TENANT_ID',
      'key create --tenant TENANT_ID --application APPLICATION_ID',
    );
  const applications = await applicationsOf({ app }, tenant.id);
  const found = applications.find((one) => one.type === 'management' && one.deleted_at === undefined);
  if (found === undefined)
    return lines(
      `Make an Application with an API key, which is shown once, for the tenant "${tenant.name}":`,
      createApplication(tenant.id),
    );
  return lines(
    `Make another key for the Application "${found.name}" of the tenant "${tenant.name}":`,
    `key create --tenant ${tenant.id} --application ${found.id}`,
  );
};
