import { mongoConnection, type MongoConnection } from '../../src/mongodb/connection';
import {
  mongodbReadModels,
  type MongoReadModelsOptions,
} from '../../src/read-models/mongodb/mongodb-read-models';
import { openGate, type Gate } from './gate';
import { mongodbUrl } from './mongodb/databases';
import { startProxy, type MongoProxy } from './mongodb/proxy';

const connections = new Set<MongoConnection>();
const closing: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const connection of connections) await connection.close();
  for (const close of closing) await close();
});

export const connectMongodb = async (url = mongodbUrl()): Promise<MongoConnection> => {
  const connection = await mongoConnection(url, { waitMs: 10_000, onError: () => undefined });
  connections.add(connection);
  const close = async (): Promise<void> => {
    connections.delete(connection);
    await connection.close();
  };
  return { ...connection, close };
};

export const openMongodb = async (place: string | undefined, options: MongoReadModelsOptions) => {
  const connection = await connectMongodb(mongodbUrl(place));
  const readModels = await mongodbReadModels(connection, options);
  const close = async (): Promise<void> => {
    await readModels.close();
    await connection.close();
  };
  return { ...readModels, close };
};

export type DisturbedMongodb = Gate & Pick<MongoProxy, 'faults' | 'roundTrips'> & { readonly url: string };

/** An unused database behind a gate, which disturbs connections, and a proxy, which disturbs and counts commands. */
export const mongodbBehindProxy = async (): Promise<DisturbedMongodb> => {
  const direct = new URL(mongodbUrl());
  const { faults, roundTrips, ...proxy } = await startProxy({
    host: direct.hostname,
    port: Number(direct.port),
  });
  const gate = await openGate(() => proxy.port);
  closing.push(gate.shut, proxy.close);
  // Otherwise the driver would ask for the members of the set, and connect to them past the proxy.
  const url = `mongodb://127.0.0.1:${gate.port}${direct.pathname}?directConnection=true`;
  return { ...gate, faults, roundTrips, url };
};
