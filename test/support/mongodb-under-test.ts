import { randomUUID } from 'node:crypto';
import { mongoConnection, type MongoConnection } from '../../src/mongodb/connection';
import {
  mongodbReadModels,
  type MongoReadModelsOptions,
} from '../../src/read-models/mongodb/mongodb-read-models';
import type { ReadModels } from '../../src/read-models/read-models';
import { databaseUrl } from './mongodb/database-url';
import type { MongoServer } from './mongodb/server';

/** The server that tests may use instead of a stand-in: `npm run test:mongodb` sets it. */
export const REAL_MONGODB = process.env['TEST_MONGODB_URL'] ?? '';

/** The tests of one file share a stand-in; connections left open are closed after them. */
let standIn: Promise<MongoServer> | undefined;
const connections = new Set<MongoConnection>();
afterAll(async () => {
  for (const connection of connections) await connection.close();
  await (await standIn)?.close();
});

/** Loaded on demand: most test files that could use any store use another one. */
const startStandIn = (): Promise<MongoServer> => {
  const { startMongoServer } = require('./mongodb/server') as typeof import('./mongodb/server');
  return startMongoServer();
};

const serverUrl = async (): Promise<string> =>
  REAL_MONGODB === '' ? (await (standIn ??= startStandIn())).url : REAL_MONGODB;

/** The URL of a separate database for each place. */
export const mongodbUrl = async (place: string = randomUUID()): Promise<string> =>
  databaseUrl(await serverUrl(), place);

/** Connects to the database of a URL, or to an unused one. */
export const connectMongodb = async (url?: string): Promise<MongoConnection> => {
  const options = { waitMs: 10_000, onError: () => undefined };
  const connection = await mongoConnection(url ?? (await mongodbUrl()), options);
  connections.add(connection);
  const close = async (): Promise<void> => {
    connections.delete(connection);
    await connection.close();
  };
  return { ...connection, close };
};

export const openMongodb = async (
  place?: string,
  options: MongoReadModelsOptions = {},
): Promise<ReadModels> => {
  const connection = await connectMongodb(await mongodbUrl(place));
  const readModels = await mongodbReadModels(connection, options);
  const close = async (): Promise<void> => {
    await readModels.close();
    await connection.close();
  };
  return { ...readModels, close };
};
