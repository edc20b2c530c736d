import { fault, type Fault } from '../fault';

/** Checked before the driver sees it, because that quotes what it cannot parse, which may be a password. */

const FORM =
  /^mongodb(?:\+srv)?:\/\/(?:[^:@/?#\s]+(?::[^:@/?#\s]*)?@)?([^@/?#\s]+)(?:\/([^/?#\s]*))?(?:\?[^?#\s]*)?$/;

/** What MongoDB allows on every platform. */
const DATABASE = /^[^/\\. "$*<>:|?\0]{1,63}$/;

const DEFAULT_DATABASE = 'tenant_ledger';

export const invalidAddress = (why: string): Fault =>
  fault(
    'configuration_invalid',
    `MONGODB_URL is not valid: ${why}. For example: MONGODB_URL=mongodb://127.0.0.1:27017/tenant_ledger`,
  );

export interface Address {
  /** Without user and password, so it may be shown. */
  readonly servers: string;
  readonly database: string;
}

/** The names of the options in a URL. */
export const optionsIn = (url: string): readonly string[] => [
  ...new URLSearchParams(/\?(.*)$/s.exec(url.trim())?.[1] ?? '').keys(),
];

/** Options that the driver accepts, and then fails with an error about something else. */
const UNUSABLE: Readonly<Record<string, string>> = {
  maxstalenessseconds:
    'maxStalenessSeconds is for reads from secondaries, and everything is read from the primary',
  readpreferencetags:
    'readPreferenceTags is for reads from secondaries, and everything is read from the primary',
  compressors: 'compressors other than zlib need packages that are not part of tenant-ledger',
};

const mustBeUsable = (url: string): void => {
  const isZlib = /[?&]compressors=zlib(&|$)/i.test(url.trim());
  const why = optionsIn(url)
    .map((name) => name.toLowerCase())
    .filter((name) => !(isZlib && name === 'compressors'))
    .map((name) => UNUSABLE[name])
    .find((text) => text !== undefined);
  if (why !== undefined) throw invalidAddress(`${why}. Leave it out`);
};

export const addressOf = (url: string): Address => {
  const found = FORM.exec(url.trim());
  if (found === null)
    throw invalidAddress(
      'it must be mongodb://[user:password@]host:port[,host:port…]/database[?option=value&…], with special characters percent-encoded',
    );
  mustBeUsable(url);
  const [, servers = '', named = ''] = found;
  const database = named === '' ? DEFAULT_DATABASE : named;
  if (!DATABASE.test(database))
    throw invalidAddress(`${JSON.stringify(database)} cannot be the name of a database`);
  return { servers, database };
};
