import { fault, type Fault } from '../../fault';

/** Checked before the client package sees it, because that prints what it cannot parse, including the password. */

const OPTIONS = [
  'tls',
  'tlsCAFile',
  'userCertFile',
  'userKeyFile',
  'nodePreference',
  'connectionName',
  'defaultDeadline',
  'keepAliveInterval',
  'keepAliveTimeout',
  'maxDiscoverAttempts',
  'discoveryInterval',
  'gossipTimeout',
] as const;

const known = new Set<string>(OPTIONS.map((option) => option.toLowerCase()));

const invalid = (why: string): Fault =>
  fault(
    'configuration_invalid',
    `EVENTSTORE_URL is not valid: ${why}. For example: EVENTSTORE_URL=esdb://127.0.0.1:2113?tls=false`,
  );

const FORM = /^esdb(?:\+discover)?:\/\/(?:[^:@/?#\s]+:[^:@/?#\s]+@)?([^@/?#\s]+)\/?(?:\?([^?#\s]*))?$/;

const mustBeKnown = (option: string): void => {
  const name = option.split('=')[0] ?? '';
  if (/^tlsVerifyCert$/i.test(name))
    throw invalid('certificates are always verified; set the certificate authority with tlsCAFile instead');
  if (!known.has(name.toLowerCase())) throw invalid(`there is no option ${JSON.stringify(name)}`);
};

/** The servers in a connection string, without user and password, so they may be shown. */
export const serversOf = (url: string): string => {
  const match = FORM.exec(url.trim());
  if (match === null)
    throw invalid(
      'it must be esdb://[user:password@]host:port[,host:port…][?option=value&…], with special characters percent-encoded',
    );
  for (const option of (match[2] ?? '').split('&').filter((text) => text !== '')) mustBeKnown(option);
  return match[1] as string;
};

/** So that a frozen leader and dead candidates are noticed within seconds: the package's defaults take up to 20 s. */
const DEFAULTS = { keepAliveInterval: 2_000, keepAliveTimeout: 2_000, gossipTimeout: 1 } as const;

export const withDefaults = (url: string): string =>
  Object.entries(DEFAULTS)
    .filter(([name]) => !new RegExp(`[?&]${name}=`, 'i').test(url))
    .reduce((whole, [name, value]) => `${whole}${whole.includes('?') ? '&' : '?'}${name}=${value}`, url);

/** The package's own message quotes the text, which may contain a password. */
export const unparsable = (): Fault =>
  invalid('the client cannot parse it, or a file that it names does not exist');
