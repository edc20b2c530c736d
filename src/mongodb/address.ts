import { fault, type Fault } from '../fault';

/** Checked before the driver sees it, because that quotes what it cannot parse, which may be a password. */
const FORM =
  /^mongodb(?:\+srv)?:\/\/(?:[^:@/?#\s]+(?::[^:@/?#\s]*)?@)?([^@/?#\s]+)(?:\/([^/?#\s]*))?(?:\?[^?#\s]*)?$/;

/** What MongoDB allows on every platform. */
const DATABASE = /^[^/\\. "$*<>:|?\0]{1,63}$/;

/** Options that the driver accepts, and then fails with an error about something else. */
const UNUSABLE = /[?&](maxStalenessSeconds|readPreferenceTags|compressors=(?!zlib(&|$)))/i;

export const invalidAddress = (why: string): Fault =>
  fault(
    'configuration_invalid',
    `MONGODB_URL is not valid: ${why}. For example: MONGODB_URL=mongodb://127.0.0.1:27017/tenant_ledger`,
  );

/** The servers, without user and password, so that they may be shown, and the database. */
export const addressOf = (url: string) => {
  const found = FORM.exec(url);
  if (found === null)
    throw invalidAddress(
      'it must be mongodb://[user:password@]host:port[,host:port…]/database[?option=value&…], with special characters percent-encoded',
    );
  if (UNUSABLE.test(url))
    throw invalidAddress(
      'maxStalenessSeconds and readPreferenceTags, which are for reads from secondaries, and compressors other than zlib cannot be used',
    );
  const [, servers = '', named = ''] = found;
  const database = named === '' ? 'tenant_ledger' : named;
  if (DATABASE.test(database)) return { servers, database };
  throw invalidAddress(`${JSON.stringify(database)} cannot be the name of a database`);
};
