import { createHash } from 'node:crypto';
import { openApp, type App } from '../../src/app/app';
import { readConfiguration } from '../../src/configuration';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { mongodbUrl } from './mongodb/databases';

/**
 * Where the programs of a test keep their data: in their folder, or in the clustered profile in an event store, where each
 * folder has its own prefix, and in MongoDB, where each folder has its own database. `test/stores/jest.config.cjs` says
 * which tests run in which profile.
 */
export const isClustered = process.env['PROFILE'] === 'clustered';

type Settings = Readonly<Record<string, string>>;

export const storesOf = (folder: string): Settings => {
  if (!isClustered) return {};
  const name = createHash('sha256').update(folder).digest('hex').slice(0, 16);
  return clustered(process.env['TEST_EVENTSTORE_URL'] ?? '', folder, `test-${name}.`);
};

/** A program on this event store and on a database of MongoDB that belongs to the place. */
export const clustered = (url: string, place?: string, prefix = 'ledger.') => ({
  EVENTSTORE_URL: url,
  STREAM_PREFIX: prefix,
  MONGODB_URL: mongodbUrl(place),
});

/** A program that keeps everything in its folder, wherever the other programs of the test do. */
export const EMBEDDED = { EVENTSTORE_URL: '', STREAM_PREFIX: '', MONGODB_URL: '' };

export const openAppIn = (folder: string, stores = storesOf(folder)): Promise<App> =>
  openApp(readConfiguration({ DATA_DIR: folder, ...stores }), () => undefined);

export const openLogIn = async (folder: string) => {
  const { EVENTSTORE_URL, STREAM_PREFIX } = storesOf(folder);
  const streams = streamNames(STREAM_PREFIX);
  if (EVENTSTORE_URL === undefined) return { log: await sqliteEventLog(folder, streams), streams };
  // Its driver takes long to load, and few tests need it.
  const { eventStoreDbEventLog } =
    require('../../src/event-log/eventstoredb/eventstoredb-event-log') as typeof import('../../src/event-log/eventstoredb/eventstoredb-event-log');
  const log = await eventStoreDbEventLog(EVENTSTORE_URL, streams, {
    waitMs: 5_000,
    onError: () => undefined,
  });
  return { log, streams };
};
