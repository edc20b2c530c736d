import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  get,
  loadLine,
  MANY,
  measureByTurns,
  median,
  put,
  start,
  startService,
  stopAll,
  type Load,
  type Measured,
  type Target,
} from './http-load';
import { serveHello, serveLibraries } from './koa-servers';

/**
 * What is the overhead of a request? `GET /tenants/self` with everything on, with and without its access log, compared to
 * a bare Koa that says hello and to the service's libraries without the service; `GET /logs`; `PUT /tenants/self` from 32
 * connections to 32 tenants, and from a single client. All take turns in one run, with the client in its own process.
 * `npm run bench -- http [ROUNDS] [SECONDS]`
 */
const ROUNDS = Number(process.argv[2] ?? 5);
const SECONDS = Number(process.argv[3] ?? 2);
const report = (measured: ReadonlyMap<Load, readonly Measured[]>): void => {
  console.log(loadLine(ROUNDS, SECONDS));
  const [bare = []] = measured.values();
  for (const [{ name, connections }, each] of measured) {
    const rate = median(each.map((result) => result.rate));
    const cost = median(each.map((result) => result.cost)).toFixed(1);
    const ratio = median(each.map((result, round) => result.rate / (bare[round]?.rate ?? NaN)));
    const byCost = median(each.map((result, round) => (bare[round]?.cost ?? NaN) / result.cost));
    const ofBare = `${ratio.toFixed(2)} of bare Koa, by processor time ${byCost.toFixed(2)}`;
    const taken = `${((connections * 1_000) / rate).toFixed(2)} ms each`;
    console.log(
      `${name.padEnd(40)} ${rate.toFixed(0).padStart(6)}/s, ${taken}, ${cost} µs of processor; ${ofBare}`,
    );
  }
};

const main = async (): Promise<void> => {
  const root = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));
  const bare = { server: await start(root, [__filename, '0', '0', 'hello']), keys: ['none'] };
  const libraries = { server: await start(root, [__filename, '0', '0', 'libraries']), keys: ['none'] };
  const logging = await startService(root, {});
  const quiet = await startService(root, { LOG_LEVEL: 'warn' });
  const loads = new Map<Load, Target>([
    [get('bare Koa: hello', '/'), bare],
    [get('the libraries alone, with a log line', '/tenants/self'), libraries],
    [get('GET /tenants/self', '/tenants/self'), { ...logging, keys: logging.keys.slice(0, 1) }],
    [
      get('GET /tenants/self without access log', '/tenants/self'),
      { ...quiet, keys: quiet.keys.slice(0, 1) },
    ],
    [get('GET /logs', '/logs'), logging],
    [put('PUT /tenants/self to 32 tenants', MANY), logging],
    [put('PUT /tenants/self of one client', 1), logging],
  ]);
  try {
    report(await measureByTurns(loads, ROUNDS, SECONDS));
  } finally {
    await stopAll([bare.server, libraries.server, logging.server, quiet.server]);
    rmSync(root, { recursive: true, force: true });
  }
};

const role = process.argv[4];
if (role === 'hello') serveHello();
else if (role === 'libraries') serveLibraries();
else void main();
