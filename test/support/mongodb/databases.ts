import { randomUUID } from 'node:crypto';
import os from 'node:os';
import { databaseUrl } from './database-url';

/** The server of this run. Empty: there is none. */
const SERVER = process.env['TEST_MONGODB_URL'] ?? '';

/** Tests that need MongoDB. If there is none, their name says that they were skipped, and why. */
export const describeMongodb: (name: string, tests: () => void) => void = (name, tests) =>
  SERVER === '' ? describe.skip(`${name} (skipped: there is no MongoDB here)`, tests) : describe(name, tests);

const used = new Set<string>();

export const mongodbUrl = (place: string = randomUUID()): string => {
  const url = databaseUrl(SERVER, place);
  used.add(url);
  return url;
};

const dropUsed = async (): Promise<void> => {
  if (used.size === 0) return;
  const { MongoClient } = require('mongodb') as typeof import('mongodb');
  const client = new MongoClient(SERVER, { runtimeAdapters: { os } });
  await Promise.all([...used].map((url) => client.db(new URL(url).pathname.slice(1)).dropDatabase()));
  await client.close();
};

/** A server keeps the files of every database open, so each test file drops its own. Campaigns run without Jest. */
if (typeof afterAll === 'function') afterAll(dropUsed);
