import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { Agent, get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pause } from '../src/async/clock';
import type { StreamReads } from '../test/support/event-store/stand-in-process';
import { at, bench, printFigures } from './builds';
import { makeLog } from './given-log';
import { caughtUp, startServer, type Server } from './processes';
import { mongodbServer, placeIn, STAND_IN } from './stores';

/**
 * What do active tenants cost the event store in reads? Each of them sends this many `GET /tenants/self` a second, to two
 * instances in turn; the stand-in for an event store counts which streams each instance reads.
 * `npm run bench -- active-tenants [TENANTS] [REQUESTS_PER_SECOND] [SECONDS]`
 */
const TENANTS = Number(process.argv[2] ?? 1_000);
const REQUESTS_PER_SECOND = Number(process.argv[3] ?? 1);
const SECONDS = Number(process.argv[4] ?? 15);
const INSTANCES = 2;
const AT_ONCE = 16;

let refused = 0;

const agent = new Agent({ keepAlive: true, maxSockets: 64 });

/** Returns how many milliseconds the response took. On a busy machine, it may be 503, which is counted. */
const getTenant = async ({ url }: Server, key: string): Promise<number> => {
  const began = performance.now();
  const request = get(`${url}/tenants/self`, { agent, headers: { 'SVC-API-KEY': key } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const body = await text(response);
  if (response.statusCode === 503) refused += 1;
  else if (response.statusCode !== 200) throw new Error(`GET: ${response.statusCode} ${body}`);
  return performance.now() - began;
};

/** Sends the requests of one tenant, each when it is due, or as soon as the one before it was answered. */
const beActive = async (servers: readonly Server[], key: string, until: number): Promise<number[]> => {
  const everyMs = 1_000 / REQUESTS_PER_SECOND;
  const took: number[] = [];
  let due = performance.now() + Math.random() * everyMs;
  for (let n = Math.floor(Math.random() * servers.length); due < until; n += 1, due += everyMs) {
    await pause(Math.max(0, due - performance.now()));
    took.push(await getTenant(servers[n % servers.length] as Server, key));
  }
  return took;
};

const measure = async (
  servers: readonly Server[],
  keys: readonly string[],
  countReads: () => Promise<StreamReads>,
): Promise<void> => {
  // The first request of a tenant reads its whole stream, and records that its key was used.
  for (const server of servers)
    for (let first = 0; first < keys.length; first += AT_ONCE)
      await Promise.all(keys.slice(first, first + AT_ONCE).map((key) => getTenant(server, key)));
  await Promise.all(servers.map(caughtUp));
  await countReads();
  refused = 0;
  const began = performance.now();
  const until = began + SECONDS * 1_000;
  const took = (await Promise.all(keys.map((key) => beActive(servers, key, until)))).flat();
  const seconds = (performance.now() - began) / 1_000;
  const reads = (await countReads()).filter(([, stream]) => stream.includes('tenant-'));
  printFigures(`${keys.length} tenants, ${INSTANCES} instances`, {
    'requests/s': took.length / seconds,
    '503 in all': refused,
    'ms p50': at(took, 0.5),
    'ms p99': at(took, 0.99),
    'reads of streams per request': reads.reduce((sum, [, , count]) => sum + count, 0) / took.length,
  });
  for (const reader of new Set(reads.map(([name]) => name))) {
    const counts = reads.filter(([name]) => name === reader).map(([, , count]) => count);
    printFigures('one instance', {
      'reads of streams/s': counts.reduce((sum, count) => sum + count, 0) / seconds,
      'of one tenant/s, at most': Math.max(...counts) / seconds,
    });
  }
};

void bench(async (root) => {
  const mongodb = await mongodbServer();
  const eventStore = fork(STAND_IN);
  const [url] = (await once(eventStore, 'message')) as [string];
  const env = {
    DATA_DIR: mkdtempSync(join(root, 'data-')),
    RATE_LIMITS: 'off',
    ...placeIn(url, mongodb.url),
  };
  const customers = await makeLog(env, { tenants: TENANTS });
  const servers: Server[] = [];
  for (let i = 0; i < INSTANCES; i += 1) servers.push(await startServer(env));
  await Promise.all(servers.map(caughtUp));
  const keys = customers.map(({ key }) => key);
  await measure(servers, keys, async () => {
    eventStore.send('count');
    const [counted] = (await once(eventStore, 'message')) as [StreamReads];
    return counted;
  });
  for (const server of servers) await server.stop();
  eventStore.disconnect();
  await mongodb.close();
});
