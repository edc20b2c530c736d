import { fault, type Fault } from '../../fault';

/** Checked before the client package sees it, because that prints what it cannot parse, including the password. */

const invalid = (why: string): Fault =>
  fault(
    'configuration_invalid',
    `EVENTSTORE_URL is not valid: ${why}. For example: EVENTSTORE_URL=esdb://127.0.0.1:2113?tls=false`,
  );

const FORM = /^esdb(?:\+discover)?:\/\/(?:[^:@/?#\s]+:[^:@/?#\s]+@)?([^@/?#\s]+)\/?(?:\?[^?#\s]*)?$/;

/** The servers in a connection string, without user and password, so they may be shown. */
export const serversOf = (url: string): string => {
  const match = FORM.exec(url.trim());
  if (match === null)
    throw invalid(
      'it must be esdb://[user:password@]host:port[,host:port…][?option=value&…], with special characters percent-encoded',
    );
  return match[1] as string;
};

/**
 * So that a frozen leader and dead candidates are noticed within seconds: the package's defaults take up to 20 s. gRPC
 * reuses a connection for clients with the same options, even a dead one, so each client has a timeout of its own. Of
 * options that come twice, the last counts.
 */
export const withTimeouts = (url: string, client: number): string => {
  const [servers = '', options = ''] = url.trim().split('?');
  const given = options.split('&').filter((option) => option !== '');
  const all = ['keepAliveInterval=2000', 'gossipTimeout=1', ...given, `keepAliveTimeout=${2_000 + client}`];
  return `${servers}?${all.join('&')}`;
};

/** The package's own message quotes the text, which may contain a password. */
export const unparsable = (): Fault =>
  invalid('the client cannot parse it, or a file that it names does not exist');
