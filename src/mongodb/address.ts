import { fault, type Fault } from '../fault';

/** Checked before the driver sees it: that one quotes what it cannot read, and that may be a password. */

const FORM =
  /^mongodb(?:\+srv)?:\/\/(?:[^:@/?#\s]+(?::[^:@/?#\s]*)?@)?([^@/?#\s]+)(?:\/([^/?#\s]*))?(?:\?[^?#\s]*)?$/;

/** What MongoDB allows on every platform. */
const DATABASE = /^[^/\\. "$*<>:|?\0]{1,63}$/;

const DEFAULT_DATABASE = 'tenant_ledger';

export const wrongAddress = (why: string): Fault =>
  fault(
    'configuration_invalid',
    `MONGODB_URL is not valid: ${why}. For example: MONGODB_URL=mongodb://127.0.0.1:27017/tenant_ledger`,
  );

export interface Address {
  /** Without user and password: it may be shown. */
  readonly servers: string;
  readonly database: string;
}

export const addressOf = (url: string): Address => {
  const found = FORM.exec(url.trim());
  if (found === null)
    throw wrongAddress(
      'it must be mongodb://[user:password@]host:port[,host:port…]/database[?option=value&…], with special characters percent-encoded',
    );
  const [, servers = '', named = ''] = found;
  const database = named === '' ? DEFAULT_DATABASE : named;
  if (!DATABASE.test(database)) throw wrongAddress(`${JSON.stringify(database)} cannot be a database's name`);
  return { servers, database };
};
