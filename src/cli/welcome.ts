import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { TenantDocument } from '../../projections/tenants';
import type { App } from '../app/app';
import { withoutSecrets } from '../app/log-address';
import { settings, type Configuration, headerNames } from '../configuration';
import { allTenants, applicationsOf } from './lookups';
import { visible } from './output';

const ROOT = join(__dirname, '..', '..', '..');

/** Its users run commands from outside the container. The Dockerfile creates the file. */
const isInImage = (): boolean => existsSync(join(ROOT, '.image'));

/** In a clone, the program is not on the PATH. */
const program = (): string =>
  existsSync(join(ROOT, 'tsconfig.json')) ? 'npx tenant-ledger' : 'tenant-ledger';

const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** The URLs that contain a password or the like: pasted with a mask in its place, they would override the right ones. */
const secretUrls = (configuration: Configuration): readonly string[] =>
  (['EVENTSTORE_URL', 'MONGODB_URL'] as const).filter(
    (name) => withoutSecrets(configuration[name]) !== configuration[name],
  );

/** The settings that a command needs to work on the same data, with the same actor. */
const settingsOf = (configuration: Configuration): string => {
  const secret = secretUrls(configuration);
  const needed = {
    DATA_DIR: configuration.DATA_DIR === settings.DATA_DIR.fallback ? '' : resolve(configuration.DATA_DIR),
    EVENTSTORE_URL: configuration.EVENTSTORE_URL,
    MONGODB_URL: configuration.MONGODB_URL,
    STREAM_PREFIX: configuration.STREAM_PREFIX,
    OPERATOR_ID: configuration.OPERATOR_ID === settings.OPERATOR_ID.fallback ? '' : configuration.OPERATOR_ID,
  };
  return Object.entries(needed)
    .filter(([name, value]) => value !== '' && !secret.includes(name))
    .map(([name, value]) => `${name}=${quoted(value)} `)
    .join('');
};

/** A command line that works where the server was started. */
const commandLine = (configuration: Configuration, rest: string): string =>
  isInImage()
    ? `  docker compose exec service tenant-ledger ${rest}`
    : `  ${settingsOf(configuration)}${program()} ${rest}`;

/** Enough to read and change the tenant, and to read its logs and its usage. */
const PERMISSIONS = ['tenant:read', 'tenant:update', 'log:read', 'report:read'];

const createApplication = (tenantId: string): string =>
  `application create --tenant ${tenantId} --name Management --type management ${PERMISSIONS.map((permission) => `--permission ${permission}`).join(' ')}`;

/** The tenant that is not deleted, if there is exactly one. */
const onlyTenant = async (app: App): Promise<TenantDocument | 'none' | 'many'> => {
  let only: TenantDocument | undefined;
  for await (const tenant of allTenants({ app })) {
    if (tenant.deleted_at !== undefined) continue;
    if (only !== undefined) return 'many';
    only = tenant;
  }
  return only ?? 'none';
};

/** How to get a key: a sentence, and the commands to run. */
const howToCreateKey = async (app: App): Promise<readonly [string, ...string[]]> => {
  const tenant = await onlyTenant(app);
  if (tenant === 'none')
    return [
      'There is no tenant. Create one, and an Application with an API key, which is shown once:',
      'tenant create --name "My tenant"',
      createApplication('TENANT_ID'),
    ];
  if (tenant === 'many')
    return [
      'Create another key for an Application of one of the tenants:',
      'tenant list',
      'application list --tenant TENANT_ID',
      'key create --tenant TENANT_ID --application APPLICATION_ID',
    ];
  const applications = await applicationsOf({ app }, tenant.id);
  const management = applications.find(
    ({ type, deleted_at }) => type === 'management' && deleted_at === undefined,
  );
  return management === undefined
    ? [
        `Create an Application with an API key, which is shown once, for the tenant "${tenant.name}":`,
        createApplication(tenant.id),
      ]
    : [
        `Create another key for the Application "${management.name}" of the tenant "${tenant.name}":`,
        `key create --tenant ${tenant.id} --application ${management.id}`,
      ];
};

const curlLines = (url: string, header: string, key: string): readonly string[] => {
  const withKey = `-H '${header}: ${key}'`;
  const rename = `-X PUT ${url}/tenants/self ${withKey} -H 'Content-Type: application/json' -d '{"name":"My first tenant"}'`;
  return [
    'Read the tenant, rename it, and read it again; then look at its audit log and its usage:',
    '',
    `  curl -s ${url}/tenants/self ${withKey}`,
    `  curl -s ${rename}`,
    `  curl -s ${url}/tenants/self ${withKey}`,
    `  curl -s '${url}/logs?size=5' ${withKey}`,
    `  curl -s ${url}/tenants/self/reports/usage ${withKey}`,
  ];
};

/** How to use the server, printed on stdout at the start. `key` belongs to the tenant that this start created, if any. */
export const welcome = async (
  app: App,
  configuration: Configuration,
  url: string,
  key: string | undefined,
): Promise<string> => {
  const lines = [`\ntenant-ledger serves ${url}`, ''];
  if (key === undefined) {
    const [sentence, ...commands] = await howToCreateKey(app);
    const secret = isInImage() ? [] : secretUrls(configuration);
    lines.push(visible(sentence), '', ...commands.map((rest) => commandLine(configuration, rest)));
    if (secret.length > 0)
      lines.push(
        '',
        `Set ${secret.join(' and ')} for them as for this server: with its password, it is not shown.`,
      );
  } else {
    const { apiKey: header } = headerNames(configuration.HEADER_PREFIX);
    const portal = configuration.PORTAL ? [`Web console, sign in with this key: ${url}/portal`] : [];
    lines.push(`API key (shown once, keep it): ${key}`, ...portal, '', ...curlLines(url, header, key));
  }
  return `${lines.join('\n')}\n\n`;
};
