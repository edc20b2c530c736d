import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projections } from '../projections/projections';
import { openApp } from '../src/app/app';
import { projectingWorkers } from '../src/app/projecting-workers';
import { rebuildInWorkers } from '../src/app/replay-workers';
import { readConfiguration } from '../src/configuration';
import { databaseUrl } from '../test/support/mongodb/database-url';
import { hasGo, startFerretDb } from '../test/support/mongodb/ferretdb';
import { startMongoProcess } from '../test/support/mongodb/own-process';
import { appendFacts, seconds } from './facts';

/**
 * How fast are events projected live and rebuilt into all read models, on SQLite and on each MongoDB at hand: the stand-in
 * of the tests, FerretDB where Go is installed, and the server that MONGODB_URL names?
 * `npm run bench:mongodb [EVENTS] [EVENTS ON FERRETDB]`; both are rounded up to thousands
 */
const EVENTS = Number(process.argv[2] ?? 4_000);
const FERRETDB_EVENTS = Number(process.argv[3] ?? 1_000);
const PATIENCE_MS = 600_000;

interface Place {
  readonly name: string;
  readonly url: string;
  readonly events: number;
  close(): Promise<void>;
}

const onError = (what: string, error: unknown): void => console.error(what, error);

const measure = async ({ name, url, events }: Place) => {
  const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));
  const MONGODB_URL = url === '' ? '' : databaseUrl(url, folder);
  const configuration = readConfiguration({ DATA_DIR: folder, MONGODB_URL });
  const app = await openApp(configuration, onError, { workers: projectingWorkers(configuration, onError) });
  await appendFacts(app, events);
  const head = (await app.log.head())?.position ?? '';
  const projecting = await seconds(async () => {
    await app.projecting.start();
    const end = performance.now() + PATIENCE_MS;
    // A server that is this busy may not answer in time.
    while (!(await app.projecting.reached(head, 1_000).catch(() => false)))
      if (performance.now() > end) throw new Error(`${name} is behind.`);
  });
  const rebuilding = await seconds(async () => {
    const options = { ifEqual: true, acceptParked: false };
    const done = await rebuildInWorkers(configuration, projections, options, { onError });
    for (const one of done) if (one.status === 'rejected') throw one.reason;
  });
  await app.close();
  rmSync(folder, { recursive: true, force: true });
  return {
    'read models in': name,
    events,
    'projected, events/s': Math.round(events / projecting),
    'rebuilt and compared, events/s': Math.round(events / rebuilding),
  };
};

const places = async (): Promise<readonly Place[]> => {
  const standIn = await startMongoProcess();
  const ferretDb = (await hasGo()) ? await startFerretDb() : undefined;
  const given = process.env['MONGODB_URL'] ?? '';
  const nothing = async (): Promise<void> => undefined;
  return [
    { name: 'SQLite', url: '', events: EVENTS, close: nothing },
    { name: 'the stand-in', url: standIn.url, events: EVENTS, close: standIn.close },
    ...(ferretDb === undefined ? [] : [{ name: 'FerretDB', events: FERRETDB_EVENTS, ...ferretDb }]),
    ...(given === '' ? [] : [{ name: 'MONGODB_URL', url: given, events: EVENTS, close: nothing }]),
  ];
};

const main = async (): Promise<void> => {
  const rows = [];
  for (const place of await places()) {
    rows.push(await measure(place));
    console.log(rows.at(-1));
    await place.close();
  }
  console.table(rows);
};

void main();
