import { useMemoryForFiles } from '../files-in-memory';
import { findMongod, HOW_TO_GET_IT } from './mongod';
import { startReplicaSet, type ReplicaSet } from './replica-set';

/** Read by `mongodb-under-test`, in the processes that run the tests. */
export const SERVER = 'TEST_MONGODB_URL';

let set: ReplicaSet | undefined;

/**
 * Starts one MongoDB for the whole run, unless MONGODB_URL names a server. Without one, tests that need it are skipped.
 * EVENTSTORE_URL names an event store to be used in place of stand-ins.
 */
export default async (): Promise<void> => {
  const eventStore = process.env['EVENTSTORE_URL'] ?? '';
  delete process.env['EVENTSTORE_URL'];
  if (eventStore !== '') process.env['TEST_EVENTSTORE_URL'] = eventStore;
  const named = process.env['MONGODB_URL'] ?? '';
  delete process.env['MONGODB_URL'];
  if (named !== '') {
    process.env[SERVER] = named;
    return;
  }
  useMemoryForFiles();
  const mongod = await findMongod();
  if (mongod === undefined) {
    if (process.env['CI'] === 'true') throw new Error(`There is no MongoDB to test with. ${HOW_TO_GET_IT}`);
    console.log(`There is no MongoDB to test with: tests that need it are skipped. ${HOW_TO_GET_IT}`);
    return;
  }
  set = await startReplicaSet(mongod, 1);
  process.env[SERVER] = set.url;
};

export const stop = async (): Promise<void> => set?.close();
