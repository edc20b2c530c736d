import type { App } from '../app/app';
import type { Configuration } from '../configuration';
import { headerNames } from '../http/answer/header-names';
import { howToMakeAKey } from './hints';

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

/** What a start prints on stdout: how to use the server. `key`: that of the tenant that this start has made. */
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
