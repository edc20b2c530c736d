import { MongoClient } from 'mongodb';
import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { databaseUrl } from '../test/support/mongodb/database-url';
import { findMongod, HOW_TO_GET_IT } from '../test/support/mongodb/mongod';
import { startProxy, type MongoProxy } from '../test/support/mongodb/proxy';
import { startReplicaSet } from '../test/support/mongodb/replica-set';
import type { Environment } from './processes';

/** A store to measure on: the one that the environment names, or one on this machine. */
export interface Store {
  readonly name: string;
  readonly url: string;
  close(): Promise<void>;
}

const named = (variable: string): Store | undefined => {
  const url = process.env[variable] ?? '';
  return url === '' ? undefined : { name: variable, url, close: async () => undefined };
};

export const mongodbServer = async (): Promise<Store> => {
  const given = named('MONGODB_URL');
  if (given !== undefined) return given;
  const mongod = await findMongod();
  if (mongod === undefined) throw new Error(`There is no MongoDB to measure. ${HOW_TO_GET_IT}`);
  const set = await startReplicaSet(mongod, 1);
  return { name: 'MongoDB, a replica set of one', url: set.url, close: set.close };
};

export const STAND_IN = join(__dirname, '..', 'test', 'support', 'event-store', 'stand-in-process.js');

export const eventStore = async (): Promise<Store> => {
  const given = named('EVENTSTORE_URL');
  if (given !== undefined) return given;
  const child = fork(STAND_IN);
  const [url] = (await once(child, 'message')) as [string];
  return {
    name: 'the stand-in for an event store',
    url,
    close: async () => {
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
};

/** A log and a database of its own in these stores. */
export const placeIn = (eventStoreUrl: string, mongodbUrl: string): Environment => {
  const name = randomUUID();
  return {
    EVENTSTORE_URL: eventStoreUrl,
    STREAM_PREFIX: `bench-${name}.`,
    MONGODB_URL: databaseUrl(mongodbUrl, name),
  };
};

/** Works in an event store of its own, if the environment names none, and in a database that is dropped afterwards. */
export const inOwnPlace = async <T>(
  mongodbUrl: string,
  work: (place: Environment) => Promise<T>,
): Promise<T> => {
  const store = await eventStore();
  const place = placeIn(store.url, mongodbUrl);
  try {
    return await work(place);
  } finally {
    const client = new MongoClient(place['MONGODB_URL'] ?? '');
    await client.db().dropDatabase();
    await client.close();
    await store.close();
  }
};

export interface ProxiedMongodb extends MongoProxy {
  readonly url: string;
}

/** Counts, and slows on request, what goes through it; with a direct connection, that is everything. */
export const proxiedMongodb = async (url: string): Promise<ProxiedMongodb> => {
  const [, host = '', port = ''] = /^mongodb:\/\/(?:[^@/]*@)?([^:/,]+):([0-9]+)/.exec(url) ?? [];
  const proxy = await startProxy({ host, port: Number(port) });
  return { ...proxy, url: `mongodb://127.0.0.1:${proxy.port}/bench?directConnection=true` };
};
