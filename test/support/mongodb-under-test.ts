import { randomUUID } from 'node:crypto';
import { mongoConnection, type MongoConnection } from '../../src/mongodb/connection';
import {
  mongodbReadModels,
  type MongoReadModelsOptions,
} from '../../src/read-models/mongodb/mongodb-read-models';
import type { ReadModels } from '../../src/read-models/read-models';
import { databaseUrl } from './mongodb/database-url';
import { startMongoServer, type MongoServer } from './mongodb/server';

/** The server that the tests of one file share: the one that TEST_MONGODB_URL names, or else a stand-in. */
let standIn: Promise<MongoServer> | undefined;
afterAll(async () => (await standIn)?.close());

export const standInUnderTest = (): Promise<MongoServer> => (standIn ??= startMongoServer());

export const isStandIn = (): boolean => (process.env['TEST_MONGODB_URL'] ?? '') === '';

const serverUrl = async (): Promise<string> =>
  isStandIn() ? (await standInUnderTest()).url : (process.env['TEST_MONGODB_URL'] as string);

export const connectMongodb = async (place: string): Promise<MongoConnection> =>
  mongoConnection(databaseUrl(await serverUrl(), place), { waitMs: 10_000, onError: () => undefined });

export const openMongodb = async (
  place: string = randomUUID(),
  options: MongoReadModelsOptions = {},
): Promise<ReadModels> => {
  const connection = await connectMongodb(place);
  try {
    const readModels = await mongodbReadModels(connection, options);
    const close = async (): Promise<void> => {
      await readModels.close();
      await connection.close();
    };
    return { ...readModels, close };
  } catch (error) {
    await connection.close();
    throw error;
  }
};
