import { fault, type Fault } from '../../fault';

/** Checked before the client package sees it: that one prints what it cannot read, including the password. */

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

const wrong = (why: string): Fault =>
  fault(
    'configuration_invalid',
    `EVENTSTORE_URL is not valid: ${why}. For example: EVENTSTORE_URL=esdb://127.0.0.1:2113?tls=false`,
  );

const FORM = /^esdb(?:\+discover)?:\/\/(?:[^:@/?#\s]+:[^:@/?#\s]+@)?([^@/?#\s]+)\/?(?:\?([^?#\s]*))?$/;

const mustBeKnown = (option: string): void => {
  const name = option.split('=')[0] ?? '';
  if (/^tlsVerifyCert$/i.test(name))
    throw wrong('certificates are always verified; name the authority with tlsCAFile instead');
  if (!known.has(name.toLowerCase())) throw wrong(`there is no option ${JSON.stringify(name)}`);
};

/** The servers that a connection string names, without user and password: what may be shown. */
export const serversOf = (url: string): string => {
  const found = FORM.exec(url.trim());
  if (found === null)
    throw wrong(
      'it must be esdb://[user:password@]host:port[,host:port…][?option=value&…], with special letters percent-encoded',
    );
  for (const option of (found[2] ?? '').split('&').filter((text) => text !== '')) mustBeKnown(option);
  return found[1] as string;
};

/** The package's own message quotes the text, which may be a password. */
export const unparsable = (): Fault =>
  wrong('the client cannot read it, or a file that it names is not there');
