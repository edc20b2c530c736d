import { mongoConnection } from '../../src/mongodb/connection';
import { mongodbReadModels } from '../../src/read-models/mongodb/mongodb-read-models';
import { COLLECTIONS, LOG } from './contract/storage';
import { add } from './counts';

/** A process that counts once, or makes a successor, for a test that kills it while it does. */
const main = async (url: string, tenantIds: readonly string[]): Promise<void> => {
  const connection = await mongoConnection(url, { waitMs: 10_000, onError: console.error });
  const readModels = await mongodbReadModels(connection, { version: 'v1', collections: COLLECTIONS });
  const live = await readModels.live();
  if (live === undefined) throw new Error('There is nothing to do.');
  if (tenantIds.length > 0) return void (await add(live.set, tenantIds));
  const follow = (): Promise<never> => {
    process.send!('following');
    return new Promise(() => undefined);
  };
  await readModels.succeed(await readModels.create(LOG), live.set, { follow });
};

void main(process.argv[2]!, process.argv.slice(3));
