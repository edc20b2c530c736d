import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projections } from '../projections/projections';
import { openApp } from '../src/app/app';
import { projectingWorkers } from '../src/app/projecting-workers';
import { rebuildInWorkers } from '../src/app/replay-workers';
import { readConfiguration } from '../src/configuration';
import { messageOf } from '../src/fault';
import { databaseUrl } from '../test/support/mongodb/database-url';
import { hasGo, startFerretDb } from '../test/support/mongodb/ferretdb';
import { startMongoProcess } from '../test/support/mongodb/own-process';
import { appendFacts, seconds } from './facts';

/**
 * How fast are events projected live and rebuilt into all read models, on SQLite and on each available MongoDB: the
 * stand-in of the tests, FerretDB if Go is installed, and the server at MONGODB_URL?
 * `npm run bench:mongodb [EVENTS] [EVENTS ON FERRETDB]`; 0 skips FerretDB
 */
const EVENTS = Number(process.argv[2] ?? 10_000);
const FERRETDB_EVENTS = Number(process.argv[3] ?? 100);
const TIMEOUT_MS = 120_000;

interface Store {
  readonly name: string;
  readonly url: string;
  readonly events: number;
  close(): Promise<void>;
}

const onError = (what: string, error: unknown): void => console.error(`${what} ${messageOf(error)}`);

const measure = async ({ name, url, events }: Store, folder: string) => {
  const MONGODB_URL = url === '' ? '' : databaseUrl(url, folder);
  const configuration = readConfiguration({ DATA_DIR: folder, MONGODB_URL });
  const app = await openApp(configuration, onError, { workers: projectingWorkers(configuration, onError) });
  await appendFacts(app, events);
  const head = (await app.log.head())?.position ?? '';
  const projecting = await seconds(async () => {
    await app.projecting.start();
    const end = performance.now() + TIMEOUT_MS;
    // Under this load, a server may not respond in time.
    while (!(await app.projecting.reached(head, 1_000).catch(() => false)))
      if (performance.now() > end)
        throw new Error(`${events} events were not projected within ${TIMEOUT_MS / 1_000} s.`);
  });
  const rebuilding = await seconds(async () => {
    const options = { ifEqual: true, acceptParked: false };
    const outcomes = await rebuildInWorkers(configuration, projections, options, { onError });
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  });
  await app.close();
  return {
    'read models in': name,
    events,
    'projected, events/s': Math.round(events / projecting),
    'rebuilt and compared, events/s': Math.round(events / rebuilding),
  };
};

const nothing = async (): Promise<void> => undefined;

const openStores = async (): Promise<readonly Store[]> => {
  const standIn = await startMongoProcess();
  const ferretDb = FERRETDB_EVENTS > 0 && (await hasGo()) ? await startFerretDb() : undefined;
  const configuredUrl = process.env['MONGODB_URL'] ?? '';
  return [
    { name: 'SQLite', url: '', events: EVENTS, close: nothing },
    { name: 'the stand-in', url: standIn.url, events: EVENTS, close: standIn.close },
    ...(ferretDb === undefined ? [] : [{ name: 'FerretDB', events: FERRETDB_EVENTS, ...ferretDb }]),
    ...(configuredUrl === ''
      ? []
      : [{ name: 'MONGODB_URL', url: configuredUrl, events: EVENTS, close: nothing }]),
  ];
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
