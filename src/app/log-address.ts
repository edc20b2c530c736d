import { resolve } from 'node:path';
import type { Configuration } from '../configuration';
import { logPath } from '../event-log/sqlite/log-file';

/** Masks credentials and secret MongoDB options. */
export const withoutSecrets = (address: string): string =>
  address.replace(/\/\/.*@/s, '//…@').replace(/([?&](?:\w*password|authMechanismProperties)=)[^&]*/gi, '$1…');

type Place<Url extends 'EVENTSTORE_URL' | 'MONGODB_URL'> = Pick<Configuration, 'DATA_DIR' | Url>;

/** Where the event log is stored, for display: of the URL of an event store only the servers. */
export const storeOf = ({ DATA_DIR, EVENTSTORE_URL }: Place<'EVENTSTORE_URL'>): string => {
  const [, scheme, servers] = /^(esdb(?:\+discover)?:\/\/)(?:.*@)?([^@/?#]*)/s.exec(EVENTSTORE_URL) ?? [];
  return scheme === undefined ? resolve(logPath(DATA_DIR)) : `${scheme}${servers}`;
};

/** Where the read models are stored, for display: of a MongoDB URL only the servers and the database. */
export const readModelStoreOf = ({ DATA_DIR, MONGODB_URL }: Place<'MONGODB_URL'>): string => {
  const [, scheme, servers] = /^(mongodb(?:\+srv)?:\/\/)(?:.*@)?([^@?#]*)/s.exec(MONGODB_URL) ?? [];
  return scheme === undefined ? resolve(DATA_DIR, 'read-models') : `${scheme}${servers}`;
};

/** The data folder of `sqlite:PATH` or a plain path. Undefined: another kind of address. */
export const folderOf = (address: string): string | undefined => {
  const [, scheme = 'sqlite', path = address] = /^([a-z][a-z0-9+.-]+):(.*)$/is.exec(address) ?? [];
  return scheme === 'sqlite' && path !== '' ? path : undefined;
};
