import { readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Configuration } from '../configuration';
import { fault, type Fault } from '../fault';

/** Where an event log is kept: how that is given, and how it may be shown. */

/** An address may hold a user and a password. */
export const withoutSecrets = (address: string): string => address.replace(/\/\/[^/?#]*@/, '//…@');

/** Where the event log is kept. Of the address of an event store only the servers are shown. */
export const storeOf = ({
  DATA_DIR,
  EVENTSTORE_URL,
}: Pick<Configuration, 'DATA_DIR' | 'EVENTSTORE_URL'>): string => {
  const [, scheme, servers] = /^(esdb(?:\+discover)?:\/\/)(?:.*@)?([^@/?#]*)/s.exec(EVENTSTORE_URL) ?? [];
  return scheme === undefined ? resolve(DATA_DIR, 'events.db') : `${scheme}${servers}`;
};

/** Names a data folder: `sqlite:PATH`, `file:PATH`, or the plain path. */
export const folderOf = (address: string): string | undefined => {
  if (address.startsWith('file://')) return fileURLToPath(address);
  const [, scheme, path = address] = /^([a-z][a-z0-9+.-]+):(.*)$/is.exec(address) ?? [];
  return scheme === undefined || scheme === 'sqlite' || scheme === 'file' ? path : undefined;
};

export const readModelsIn = (folder: string): string => join(folder, 'read-models');

/** They are made after the log: where there are any, the log has been there. */
export const holdsReadModels = (folder: string): boolean =>
  statSync(readModelsIn(folder), { throwIfNoEntry: false })?.isDirectory() === true &&
  readdirSync(readModelsIn(folder)).some((file) => file.endsWith('.db'));

/** Read models were made with a log: where there is none, they are of another one, and none is begun beside them. */
export const noLogHere = (configuration: Configuration): Fault | undefined =>
  holdsReadModels(configuration.DATA_DIR)
    ? fault(
        'read_models_of_another_log',
        `There is no log with STREAM_PREFIX="${configuration.STREAM_PREFIX}" in ${storeOf(configuration)}, but the data folder ${configuration.DATA_DIR} has read models of one. Check EVENTSTORE_URL, STREAM_PREFIX and DATA_DIR. If a new log is meant, move the folder of the read models away and start again.`,
        { isFinal: true },
      )
    : undefined;
