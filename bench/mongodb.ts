import { MongoClient, type Db } from 'mongodb';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bench, byTurns, type Build, type Figures } from './builds';
import { factLines } from './facts';
import { makeLog } from './given-log';
import { caughtUp, runToEnd, startServer, usedBy, type Environment } from './processes';
import { eventStore, mongodbServer, placeIn } from './stores';

/**
 * How fast are ingested facts projected into all read models, and what do these occupy: on SQLite, and on an event store
 * and MongoDB, which are those that EVENTSTORE_URL and MONGODB_URL name, or a stand-in and a replica set of one on this
 * machine? With BASE, the `main.js` of another build takes turns. `npm run bench -- mongodb [ROUNDS] [EVENTS]`
 */
const ROUNDS = Number(process.argv[2] ?? 2);
const EVENTS = Number(process.argv[3] ?? 4_000);

interface Sizes {
  readonly oplog: number;
  /** Of the largest collection, the rows of the log. */
  readonly rows: number;
  readonly data: number;
  readonly indexes: number;
}

const sizesOf = async (url: string): Promise<Sizes> => {
  const client = new MongoClient(url);
  const statsOf = async (db: Db, name: string) => {
    const { count, size, totalIndexSize } = await db.command({ collStats: name });
    return { rows: Number(count), data: Number(size), indexes: Number(totalIndexSize) };
  };
  const names = await client.db().listCollections({}, { nameOnly: true }).toArray();
  const all = [];
  for (const { name } of names) all.push(await statsOf(client.db(), name));
  const [largest = { rows: 0, data: 0, indexes: 0 }] = all.toSorted((a, b) => b.data - a.data);
  const { data: oplog } = await statsOf(client.db('local'), 'oplog.rs');
  await client.close();
  return { oplog, ...largest };
};

const sizeFigures = (before: Sizes, after: Sizes): Figures => ({
  'bytes a log row': after.data / after.rows,
  'of its indexes': after.indexes / after.rows,
  'oplog bytes an event': (after.oplog - before.oplog) / EVENTS,
});

const measure = async (root: string, { name, main }: Build, stores: Environment): Promise<Figures> => {
  const env = { DATA_DIR: mkdtempSync(join(root, `${name}-`)), RATE_LIMITS: 'off', ...stores };
  const customers = await makeLog(env, { tenants: 10 }, main);
  const file = join(root, 'facts.ndjson');
  const tenants = customers.map(({ tenantId }) => tenantId);
  writeFileSync(file, factLines(tenants, EVENTS));
  const server = await startServer(env, main);
  const { MONGODB_URL: url } = env as Environment;
  const [used, sizes] = [usedBy(server.pid), url === undefined ? undefined : await sizesOf(url)];
  const began = performance.now();
  await runToEnd(['ingest', file], env, main);
  await caughtUp(server);
  const seconds = (performance.now() - began) / 1_000;
  const { processorSeconds } = usedBy(server.pid);
  const stored = sizes === undefined || url === undefined ? {} : sizeFigures(sizes, await sizesOf(url));
  await server.stop();
  return {
    'facts/s until shown': EVENTS / seconds,
    'µs of processor of the server each': ((processorSeconds - used.processorSeconds) * 1e6) / EVENTS,
    ...stored,
  };
};

void bench(async (root) => {
  await byTurns(`${EVENTS} facts on SQLite`, ROUNDS, (build) => measure(root, build, {}));
  const [log, mongodb] = [await eventStore(), await mongodbServer()];
  await byTurns(`${EVENTS} facts on ${log.name} and ${mongodb.name}`, ROUNDS, (build) =>
    measure(root, build, placeIn(log.url, mongodb.url)),
  );
  await log.close();
  await mongodb.close();
});
