import { randomUUID } from 'node:crypto';
import { mongoConnection, type MongoConnection } from '../../src/mongodb/connection';
import { databaseUrl } from './mongodb/database-url';
import { startMongoServer } from './mongodb/server';

/** A server that tests may use: the stand-in, or the one that TEST_MONGODB_URL names (`npm run test:mongodb` sets it). */
export interface MongoUnderTest {
  /** The URL of a database that nobody has used. */
  freshUrl(): string;
  /** A connection to the database of a URL, or to a fresh one. It is closed with the server. */
  connect(url?: string): Promise<MongoConnection>;
  close(): Promise<void>;
}

export const REAL_MONGODB = process.env['TEST_MONGODB_URL'] ?? '';

export const mongoUnderTest = async (): Promise<MongoUnderTest> => {
  const server = REAL_MONGODB === '' ? await startMongoServer() : undefined;
  const opened: MongoConnection[] = [];
  const freshUrl = (): string => databaseUrl(server?.url ?? REAL_MONGODB, randomUUID());
  return {
    freshUrl,
    connect: async (url = freshUrl()) => {
      const connection = await mongoConnection(url, { waitMs: 5_000, onError: () => undefined });
      opened.push(connection);
      return connection;
    },
    close: async () => {
      for (const connection of opened) await connection.close();
      await server?.close();
    },
  };
};
