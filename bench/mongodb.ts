import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MongoClient, type Db } from 'mongodb';
import { projections } from '../projections/projections';
import { openApp } from '../src/app/app';
import { writingThread } from '../src/app/writing-thread';
import { rebuildInWorkers } from '../src/app/replay-workers';
import { readConfiguration } from '../src/configuration';
import { messageOf } from '../src/fault';
import { databaseUrl } from '../test/support/mongodb/database-url';
import { mongodbServer } from './mongodb-server';
import { appendFacts, seconds } from './facts';

/**
 * How fast are events projected live and rebuilt into all read models, on SQLite and on MongoDB: the server that
 * MONGODB_URL names, or a replica set of one on this machine?
 * `npm run bench -- mongodb [EVENTS]`
 */
const EVENTS = Number(process.argv[2] ?? 10_000);
const TIMEOUT_MS = 120_000;

interface Store {
  readonly name: string;
  readonly url: string;
  readonly events: number;
  close(): Promise<void>;
}

const onError = (what: string, error: unknown): void => console.error(`${what} ${messageOf(error)}`);

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

const NO_SIZES: Sizes = { oplog: 0, rows: 1, data: 0, indexes: 0 };

const measure = async ({ name, url, events }: Store, folder: string) => {
  const MONGODB_URL = url === '' ? '' : databaseUrl(url, folder);
  const configuration = { ...readConfiguration({ DATA_DIR: folder }), MONGODB_URL };
  const app = await openApp(configuration, onError, { writing: writingThread(configuration, { onError }) });
  await appendFacts(app, events);
  const head = (await app.log.head())?.position ?? '';
  const sizes = (): Promise<Sizes> | Sizes => (MONGODB_URL === '' ? NO_SIZES : sizesOf(MONGODB_URL));
  const before = await sizes();
  const projecting = await seconds(async () => {
    await app.projecting.start();
    const end = performance.now() + TIMEOUT_MS;
    // Under this load, a server may not respond in time.
    while (!(await app.projecting.reached(head, 1_000).catch(() => false)))
      if (performance.now() > end)
        throw new Error(`${events} events were not projected within ${TIMEOUT_MS / 1_000} s.`);
  });
  const after = await sizes();
  const rebuilding = await seconds(async () => {
    const options = { acceptDifferences: false };
    const outcomes = await rebuildInWorkers(configuration, projections, options, { onError });
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  });
  await app.close();
  return {
    'read models in': name,
    events,
    'projected, events/s': Math.round(events / projecting),
    'rebuilt and compared, events/s': Math.round(events / rebuilding),
    'bytes a log row': Math.round(after.data / after.rows),
    'of its indexes': Math.round(after.indexes / after.rows),
    'oplog bytes an event': Math.round((after.oplog - before.oplog) / events),
  };
};

const nothing = async (): Promise<void> => undefined;

const openStores = async (): Promise<readonly Store[]> => {
  const sqlite = { name: 'SQLite', url: '', events: EVENTS, close: nothing };
  return [sqlite, { ...(await mongodbServer()), events: EVENTS }];
};

const main = async (): Promise<void> => {
  const rows = [];
  for (const store of await openStores()) {
    const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));
    try {
      rows.push(await measure(store, folder));
    } catch (error) {
      console.error(`${store.name} was not measured: ${messageOf(error)}`);
      process.exitCode = 1;
    }
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
  console.table(rows);
  // A store that was not measured may still be retrying.
  process.exit();
};

void main();
