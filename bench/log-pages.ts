import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { findLogs, type LogFilter } from '../projections/log-pages';
import { openApp, type App } from '../src/app/app';
import { operatorRequest } from '../src/app/operator';
import { readConfiguration } from '../src/configuration';
import { createApplication } from '../src/domain/applications';
import { createTenant, type Decide } from '../src/domain/tenant';
import { newKey } from '../src/ledger/api-key';
import { rebuild } from '../src/projecting/rebuild';
import { factTypes } from './facts';
import { startServer } from './processes';

/**
 * What does a page of a long log cost: the first and the far ones, unfiltered and by each filter, by page and by cursor?
 * And how soon does a server on that data send its first response? `npm run bench -- log-pages [ROWS]`
 */
const ROWS = Number(process.argv[2] ?? 300_000);
/** Small enough that page 50,000 exists for the filters by type and by dates, too. */
const SIZE = 8;
const PAGES = [1, 100, 5_000, 50_000];
const ROUNDS = 400;
const BATCH = 2_000;
/** Half of the facts are about one entity, of two types in turn, so that it has enough rows for the far pages. */
const BUSY_ENTITY = 'busy';
const BUSY_TYPES = ['TokenUsed', 'CardUsed'];
const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));
const tenantId = randomUUID();
const operator = randomUUID();

const execute = async ({ ledger }: App, decide: Decide): Promise<void> => {
  await ledger.execute({ ...operatorRequest(tenantId, operator, 10_000), decide });
};

const makeTenant = async (app: App): Promise<string> => {
  const { key, input } = newKey(tenantId);
  await execute(app, createTenant({ name: 'Bench', ownerId: operator, includedMonthlyActiveTokens: 0 }));
  const permissions = ['tenant:read', 'log:read'];
  const type = 'management';
  await execute(
    app,
    createApplication({ applicationId: randomUUID(), name: 'B', type, permissions, key: input }),
  );
  return key;
};

const factOf = (number: number) => ({
  id: randomUUID(),
  type:
    number % 2 === 0
      ? (BUSY_TYPES[(number / 2) % 2] as string)
      : (factTypes[number % factTypes.length] as string),
  data: {
    entityId: number % 2 === 0 ? BUSY_ENTITY : `e${number % 1_000}`,
    entityType: 'webhook',
    operation: 'send',
  },
  metadata: { version: 1 },
});

const fill = async ({ log, streams }: App): Promise<void> => {
  let expected: number | 'no_stream' = 'no_stream';
  for (let from = 0; from < ROWS; from += BATCH) {
    const facts = Array.from({ length: Math.min(BATCH, ROWS - from) }, (_, i) => factOf(from + i));
    ({ revision: expected } = await log.append(streams.activity(tenantId), facts, expected, 60_000));
  }
};

const project = (app: App): Promise<unknown> =>
  rebuild(app, { acceptDifferences: true, onStep: () => undefined, onDifference: () => undefined });

const seconds = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1_000;
};

interface Times {
  readonly p50: number;
  readonly p99: number;
}

const timesOf = async (query: () => Promise<unknown>): Promise<Times> => {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const began = performance.now();
    await query();
    times.push(performance.now() - began);
  }
  times.sort((a, b) => a - b);
  return { p50: times[Math.floor(ROUNDS * 0.5)] ?? 0, p99: times[Math.floor(ROUNDS * 0.99)] ?? 0 };
};

/** Pure CPU work that takes about as long as a page: shows the noise of this machine. */
const countUp = async (): Promise<number> => {
  let sum = 0;
  for (let i = 0; i < 60_000; i += 1) sum += i % 7;
  return sum;
};

/** The same page by its number, and by the cursor from the page before it. */
const waysTo = async (app: App, filter: LogFilter, page: number) => {
  const { set: reader } = await app.live.look();
  const byPage = () => findLogs(reader, tenantId, { filter, page, size: SIZE });
  if (page === 1) return { byPage };
  const before = await findLogs(reader, tenantId, { filter, page: page - 1, size: SIZE });
  const olderThan = before.rows.at(-1);
  if (olderThan === undefined) return {};
  return { byPage, byCursor: () => findLogs(reader, tenantId, { filter, page: 1, size: SIZE, olderThan }) };
};

const cells = (texts: readonly string[]): string =>
  texts.map((text, at) => (at === 0 ? text.padEnd(12) : text.padStart(13))).join('');

const printRow = (what: string, page: number, way: string, times: Times, first: Times): void =>
  console.log(
    cells([
      what,
      String(page),
      way,
      times.p50.toFixed(3),
      times.p99.toFixed(3),
      (times.p50 / first.p50).toFixed(1),
    ]),
  );

const printTimes = async (app: App, what: string, filter: LogFilter): Promise<void> => {
  let first: Times | undefined;
  for (const page of PAGES) {
    const { byPage, byCursor } = await waysTo(app, filter, page);
    if (byPage === undefined || (await byPage()).rows.length === 0) {
      console.log(cells([what, String(page), 'no such page']));
      continue;
    }
    const times = await timesOf(byPage);
    first ??= times;
    printRow(what, page, 'page', times, first);
    if (byCursor !== undefined) printRow(what, page, 'cursor', await timesOf(byCursor), first);
  }
};

/** All rows except a few at each end, so that both dates must be searched for. */
const widestDates = async (app: App): Promise<LogFilter> => {
  const { set: reader } = await app.live.look();
  const at = async (page: number) =>
    (await findLogs(reader, tenantId, { filter: {}, page, size: 1 })).rows[0]?.created_at ?? '';
  return { start_date: await at(ROWS - 10), end_date: await at(1) };
};

const firstAnswer = async (key: string): Promise<void> => {
  const began = performance.now();
  const server = await startServer({ DATA_DIR: folder });
  const { status } = await fetch(`${server.url}/tenants/self`, { headers: { 'SVC-API-KEY': key } });
  const took = (performance.now() - began) / 1_000;
  console.log(`first answer of a server on this data: ${status} after ${took.toFixed(2)} s`);
  await server.stop();
};

const main = async (): Promise<void> => {
  const configuration = readConfiguration({ DATA_DIR: folder });
  const onError = (what: string, error: unknown): void => console.error(what, error);
  const app = await openApp(configuration, onError);
  const key = await makeTenant(app);
  console.log(`${ROWS} rows of one tenant; load average ${loadavg()[0]?.toFixed(2)}`);
  console.log(`appended in ${(await seconds(() => fill(app))).toFixed(1)} s`);
  console.log(`built in ${(await seconds(() => project(app))).toFixed(1)} s`);
  console.log(`\nload average ${loadavg()[0]?.toFixed(2)}; ${ROUNDS} rounds each, times in ms`);
  console.log(cells(['filter', 'page', 'by', 'p50', 'p99', 'to page 1']));
  const loop = await timesOf(countUp);
  printRow('(a loop)', 0, '-', loop, loop);
  await printTimes(app, 'none', {});
  await printTimes(app, 'entity_type', { entity_type: 'token' });
  await printTimes(app, 'operation', { operation: 'use' });
  await printTimes(app, 'source', { source: 'fact', ...(await widestDates(app)) });
  await printTimes(app, 'dates', await widestDates(app));
  await printTimes(app, 'entity_id', { entity_id: BUSY_ENTITY });
  await printTimes(app, 'id and type', { entity_id: BUSY_ENTITY, entity_type: 'card' });
  await printTimes(app, 'id and dates', { entity_id: BUSY_ENTITY, ...(await widestDates(app)) });
  await app.close();
  await firstAnswer(key);
  console.log(`load average ${loadavg()[0]?.toFixed(2)}`);
  rmSync(folder, { recursive: true, force: true });
};

void main();
