import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { pause } from '../src/async/clock';
import { startProxy, type MongoProxy } from '../test/support/mongodb/proxy';
import { bench, byTurns, type Build, type Figures } from './builds';
import { makeLog } from './given-log';
import { caughtUp, startServer, usedBy, type Environment, type Server } from './processes';
import { eventStore, mongodbServer, placeIn } from './stores';

/**
 * What does a server cost that nobody uses: its memory, what it writes, and in the cluster the commands that it sends to
 * MongoDB, after ten quiet seconds? With BASE, the `main.js` of another build takes turns.
 * `npm run bench -- idle [ROUNDS] [QUIET_SECONDS] [SECONDS]`
 */
const ROUNDS = Number(process.argv[2] ?? 2);
const QUIET_SECONDS = Number(process.argv[3] ?? 10);
const SECONDS = Number(process.argv[4] ?? 5);
const EVENTS = 2_000;
const WRITES = 50;

/** Starts a server, uses it a little, and leaves it alone. */
const quietServer = async (root: string, { name, main }: Build, stores: Environment): Promise<Server> => {
  const env = { DATA_DIR: mkdtempSync(join(root, `${name}-`)), RATE_LIMITS: 'off', ...stores };
  const [customer] = await makeLog(env, { tenants: 10, facts: EVENTS }, main);
  const server = await startServer(env, main);
  await caughtUp(server);
  const headers = { 'SVC-API-KEY': customer?.key ?? '', 'Content-Type': 'application/json' };
  for (let n = 0; n < WRITES; n += 1) {
    const body = JSON.stringify({ name: `Name ${n}` });
    const response = await fetch(`${server.url}/tenants/self`, { method: 'PUT', headers, body });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`PUT: ${response.status}`);
  }
  await pause(QUIET_SECONDS * 1_000);
  return server;
};

const measure = async (server: Server, commands: () => number = () => 0): Promise<Figures> => {
  const [before, sent] = [usedBy(server.pid), commands()];
  await pause(SECONDS * 1_000);
  const [after, sentAfter] = [usedBy(server.pid), commands()];
  await server.stop();
  return {
    'MB in memory': after.memory,
    'bytes written/s': (after.writtenBytes - before.writtenBytes) / SECONDS,
    'ms of processor/s': ((after.processorSeconds - before.processorSeconds) * 1_000) / SECONDS,
    'commands to MongoDB/s': (sentAfter - sent) / SECONDS,
  };
};

/** Counts what goes through it; with a direct connection, that is everything. */
const countedMongodb = async (url: string): Promise<{ readonly proxy: MongoProxy; readonly url: string }> => {
  const [, host = '', port = ''] = /^mongodb:\/\/(?:[^@/]*@)?([^:/,]+):([0-9]+)/.exec(url) ?? [];
  const proxy = await startProxy({ host, port: Number(port) });
  return { proxy, url: `mongodb://127.0.0.1:${proxy.port}/bench?directConnection=true` };
};

const measureProfile = async (
  root: string,
  build: Build,
  profile: 'embedded' | 'clustered',
  mongodbUrl: string,
): Promise<Figures> => {
  if (profile === 'embedded') return measure(await quietServer(root, build, {}));
  const store = await eventStore();
  const { proxy, url } = await countedMongodb(mongodbUrl);
  const server = await quietServer(root, build, placeIn(store.url, url));
  const figures = await measure(server, () => proxy.roundTrips.count());
  await proxy.close();
  await store.close();
  return figures;
};

void bench(async (root) => {
  const mongodb = await mongodbServer();
  for (const profile of ['embedded', 'clustered'] as const)
    await byTurns(`idle, ${profile}`, ROUNDS, (build) => measureProfile(root, build, profile, mongodb.url));
  await mongodb.close();
});
