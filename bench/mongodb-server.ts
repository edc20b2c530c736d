import { findMongod, HOW_TO_GET_IT } from '../test/support/mongodb/mongod';
import { startReplicaSet } from '../test/support/mongodb/replica-set';

export interface MongodbServer {
  readonly name: string;
  readonly url: string;
  close(): Promise<void>;
}

/** The server that MONGODB_URL names, or a replica set of one on this machine. */
export const mongodbServer = async (): Promise<MongodbServer> => {
  const named = process.env['MONGODB_URL'] ?? '';
  if (named !== '') return { name: 'MONGODB_URL', url: named, close: async () => undefined };
  const mongod = await findMongod();
  if (mongod === undefined) throw new Error(`There is no MongoDB to measure. ${HOW_TO_GET_IT}`);
  const set = await startReplicaSet(mongod, 1);
  return { name: 'MongoDB, a replica set of one', url: set.url, close: set.close };
};
