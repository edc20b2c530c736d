import { createHash, randomUUID } from 'node:crypto';
import type { App } from '../app/app';
import { monotonicMs } from '../clock';
import type { Configuration } from '../configuration';
import { createApplication } from '../domain/applications';
import { permissionsOf } from '../domain/permissions';
import { createTenant, type Decide } from '../domain/tenant';
import { codeOf } from '../fault';
import { headerNames } from '../http/answer/header-names';
import { freshKey } from './application-commands';
import { addDemoFacts } from './demo';
import { operatorCaller } from './desk';
import { howToMakeAKey } from './hints';

/** What a start says on stdout: how to use what is running. */
const WRITE_MS = 10_000;

/** The same for every process that starts on this log: of several first starts at once only one makes it. */
const firstTenantId = (logIdentity: string): string =>
  createHash('sha256')
    .update(`first tenant of ${logIdentity}`)
    .digest('hex')
    .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-4$3-8$4-$5');

const makeFirstTenant = async (app: App, operator: string): Promise<string> => {
  const tenantId = firstTenantId(await app.log.identity());
  const execute = (decide: Decide) =>
    app.ledger.execute({
      tenantId,
      caller: operatorCaller(operator),
      decide,
      at: new Date().toISOString(),
      deadline: monotonicMs() + WRITE_MS,
    });
  const { key, wish } = freshKey(tenantId);
  await execute(createTenant({ name: 'First tenant', ownerId: operator, includedMonthlyActiveTokens: 0 }));
  await execute(
    createApplication({
      applicationId: randomUUID(),
      name: 'Management',
      type: 'management',
      permissions: permissionsOf('management').map((permission) => permission.type),
      key: wish,
    }),
  );
  await addDemoFacts(app, tenantId);
  return key;
};

const curlLines = (url: string, header: string, key: string): string => {
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
  ].join('\n');
};

/**
 * A first start makes a tenant with a management Application, unless `DEMO` is false; its key is shown here and never
 * again.
 */
export const firstKey = async (
  app: App,
  { OPERATOR_ID, DEMO }: Configuration,
): Promise<string | undefined> => {
  if (!DEMO || (await app.log.head()) !== undefined) return undefined;
  return makeFirstTenant(app, OPERATOR_ID).catch((error: unknown) => {
    if (codeOf(error) === 'tenant_exists') return undefined;
    throw error;
  });
};

export const welcome = async (
  app: App,
  configuration: Configuration,
  url: string,
  key: string | undefined,
): Promise<string> => {
  const { apiKey: header } = headerNames(configuration.HEADER_PREFIX);
  const lines =
    key === undefined
      ? [await howToMakeAKey(app, configuration)]
      : [`API key (shown once, keep it): ${key}`, '', curlLines(url, header, key)];
  return `\ntenant-ledger serves ${url}\n\n${lines.join('\n')}\n\n`;
};
