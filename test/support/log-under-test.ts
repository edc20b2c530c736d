import { createHash } from 'node:crypto';
import { openLog } from '../../src/app/adapters';
import { openApp, type App } from '../../src/app/app';
import { readConfiguration } from '../../src/configuration';
import type { EventLog } from '../../src/event-log/event-log';
import { streamNames, type Streams } from '../../src/event-log/streams';
import { mongodbUrl } from './mongodb/databases';
import { storeName } from './store-name';

/**
 * Which event log the programs of a test use: SQLite in their folder or, if TEST_EVENTSTORE_URL is set, that server,
 * where each folder has its own prefix. `npm run test:eventstore` sets it.
 */
export const logOf = (folder: string): Readonly<Record<string, string>> => {
  const url = process.env['TEST_EVENTSTORE_URL'];
  if (url === undefined || url === '') return {};
  const name = createHash('sha256').update(folder).digest('hex').slice(0, 16);
  return { EVENTSTORE_URL: url, STREAM_PREFIX: `test-${name}.` };
};

/** For programs whose event log is in their folder, wherever the other programs of the test keep theirs. */
export const SQLITE_LOG = { EVENTSTORE_URL: '', STREAM_PREFIX: '' };

/** The same for the read models. */
export const SQLITE_READ_MODELS = { MONGODB_URL: '' };

/** Where the read models of a test are: in the folder or, with READ_MODELS=mongodb, in a database for each folder. */
export const readModelsOf = (folder: string): Readonly<Record<string, string>> =>
  storeName === 'mongodb' ? { MONGODB_URL: mongodbUrl(folder) } : {};

/** The app on a folder, as a program of the test opens it. */
export const openAppIn = (
  folder: string,
  stores: Readonly<Record<string, string>> = { ...logOf(folder), ...readModelsOf(folder) },
): Promise<App> => openApp(readConfiguration({ DATA_DIR: folder, ...stores }), () => undefined);

/** The event log alone. */
export const openLogIn = async (
  folder: string,
): Promise<{ readonly log: EventLog; readonly streams: Streams }> => {
  const { EVENTSTORE_URL = folder, STREAM_PREFIX } = logOf(folder);
  const streams = streamNames(STREAM_PREFIX);
  return { log: await openLog(EVENTSTORE_URL, streams, 'target', () => undefined), streams };
};
