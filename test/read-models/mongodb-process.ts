import { mongoConnection } from '../../src/mongodb/connection';
import { mongodbReadModels } from '../../src/read-models/mongodb/mongodb-read-models';
import { add, COLLECTIONS } from './mongodb-counts';

/** A process that holds the lease and counts once, for a test that kills it while it does. */
const main = async (url: string): Promise<void> => {
  const connection = await mongoConnection(url, { waitMs: 10_000, onError: console.error });
  const readModels = await mongodbReadModels(connection, { version: 'v1', collections: COLLECTIONS });
  const live = await readModels.live();
  if (live === undefined || !(await readModels.lease!.hold())) throw new Error('There is nothing to do.');
  console.log('ready');
  await add(live.set);
};

void main(process.argv[2]!);
