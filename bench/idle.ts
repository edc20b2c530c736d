import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { pause } from '../src/async/clock';
import { bench, byTurns, givenNumbers, type Build, type Figures } from './builds';
import { makeLog } from './given-log';
import { caughtUp, startServer, usedBy, type Environment, type Server } from './processes';
import { inOwnPlace, mongodbServer, proxiedMongodb } from './stores';

/**
 * What does a server cost that nobody uses: its memory, what it writes, and in the cluster the commands that it sends to
 * MongoDB, after ten quiet seconds? With BASE, the `main.js` of another build takes turns.
 * `npm run bench -- idle [ROUNDS] [QUIET_SECONDS] [SECONDS]`
 */
const [ROUNDS = 2, QUIET_SECONDS = 10, SECONDS = 5] = givenNumbers;
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

export const measureIdle = async (
  root: string,
  build: Build,
  profile: 'embedded' | 'clustered',
  mongodbUrl: string,
): Promise<Figures> => {
  if (profile === 'embedded') return measure(await quietServer(root, build, {}));
  const { url, roundTrips, close } = await proxiedMongodb(mongodbUrl);
  const figures = await inOwnPlace(url, async (place) =>
    measure(await quietServer(root, build, place), () => roundTrips.count()),
  );
  await close();
  return figures;
};

if (require.main === module)
  void bench(async (root) => {
    const mongodb = await mongodbServer();
    for (const profile of ['embedded', 'clustered'] as const)
      await byTurns(`idle, ${profile}`, ROUNDS, (build) => measureIdle(root, build, profile, mongodb.url));
    await mongodb.close();
  });
