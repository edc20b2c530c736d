import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NewEvent } from '../src/event-log/event-log';
import { sqliteEventLog } from '../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../src/event-log/streams';
import { digestOf, makeKey } from '../src/ledger/api-key';
import { serveHello, serveLibraries } from './koa-servers';

/**
 * What is the overhead of a request? `GET /tenants/self` with everything on, with and without its access log, compared to
 * a bare Koa that says hello and to the service's libraries without the service; `GET /logs`; `PUT /tenants/self` from 32
 * connections to 32 tenants, and from a single client. All take turns in one run, with the client in its own process.
 * `npm run bench:http [ROUNDS] [SECONDS]`
 */
const ROUNDS = Number(process.argv[2] ?? 5);
const SECONDS = Number(process.argv[3] ?? 2);
const MANY = 32;
const MAIN = join(__dirname, '..', 'src', 'cli', 'main.js');
/** A rate limit that is counted like any other, but never reached. */
const UNREACHABLE_LIMIT = 'global=1000000000';

type Environment = Readonly<Record<string, string>>;

/** The request that a client repeats. Each connection uses its own key, if there are enough. */
interface Load {
  readonly name: string;
  readonly method: 'GET' | 'PUT';
  readonly path: string;
  readonly connections: number;
}

const requestOf = ({ method, path }: Load, key: string): string => {
  const head = `${method} ${path} HTTP/1.1\r\nHost: bench\r\nSVC-API-KEY: ${key}\r\n`;
  if (method === 'GET') return `${head}\r\n`;
  const body = '{"name":"Bench","settings":{"deduplicate_tokens":"true"}}';
  return `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
};

/** Sends one request after the other over one connection until the time is up. Returns the number of responses. */
const repeatRequest = (url: URL, request: string, until: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true });
    let responses = 0;
    let received = '';
    socket.setEncoding('latin1');
    socket.on('connect', () => socket.write(request));
    socket.on('error', reject);
    socket.on('data', (chunk: string) => {
      received += chunk;
      const head = received.indexOf('\r\n\r\n');
      if (head < 0) return;
      if (!received.startsWith('HTTP/1.1 200')) return reject(new Error(received.slice(0, 200)));
      const length = Number(/content-length: ([0-9]+)/i.exec(received)?.[1]);
      if (received.length < head + 4 + length) return;
      received = '';
      responses += 1;
      if (performance.now() < until) return void socket.write(request);
      socket.destroy();
      resolve(responses);
    });
  });

/** Runs in its own process, and prints the number of responses per second. */
const runClient = async (url: string, load: Load, keys: readonly string[]): Promise<void> => {
  const began = performance.now();
  const until = began + SECONDS * 1_000;
  const responses = await Promise.all(
    Array.from({ length: load.connections }, (_, at) =>
      repeatRequest(new URL(url), requestOf(load, keys[at % keys.length] ?? ''), until),
    ),
  );
  const total = responses.reduce((sum, count) => sum + count, 0);
  console.log(total / ((performance.now() - began) / 1_000));
};

interface Running {
  readonly child: ChildProcess;
  readonly url: string;
}

const poll = async <T>(look: () => T | undefined): Promise<T> => {
  for (let attempt = 0; attempt < 1_000; attempt += 1) {
    const found = look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('A server did not start.');
};

/** Logs to a file, as in production. */
const start = async (folder: string, args: readonly string[], env: Environment = {}): Promise<Running> => {
  const outputs = mkdtempSync(join(folder, 'output-'));
  const [out, log] = [join(outputs, 'stdout'), join(outputs, 'stderr')];
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env['PATH'] ?? '', PORT: '0', OPS_PORT: '0', DEMO: 'false', ...env },
    stdio: ['ignore', openSync(out, 'w'), openSync(log, 'w')],
  });
  const url = await poll(() => /serves (\S+)/.exec(readFileSync(out, 'utf8'))?.[1]);
  return { child, url };
};

/** The CPU time of the server process, in seconds. NaN without `/proc`. */
const processorSeconds = ({ child }: Running): number => {
  const file = `/proc/${child.pid}/stat`;
  if (!existsSync(file)) return NaN;
  const fields = readFileSync(file, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
};

interface Measured {
  /** Responses per second. */
  readonly rate: number;
  /** Microseconds of CPU time of the server process per response. */
  readonly cost: number;
}

const measure = async (server: Running, load: Load, keys: readonly string[]): Promise<Measured> => {
  const before = processorSeconds(server);
  const client = spawn(
    process.execPath,
    [__filename, String(ROUNDS), String(SECONDS), 'client', server.url, JSON.stringify(load), keys.join()],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let printed = '';
  client.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  await once(client, 'close');
  const rate = Number(printed);
  return { rate, cost: ((processorSeconds(server) - before) * 1e6) / (rate * SECONDS) };
};

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? NaN;

const report = (measured: ReadonlyMap<Load, readonly Measured[]>): void => {
  console.log(`${ROUNDS} rounds of ${SECONDS} s; load average ${loadavg()[0]?.toFixed(2)}`);
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

const event = (type: string, data: NewEvent['data']): NewEvent => ({
  id: randomUUID(),
  type,
  data,
  metadata: { version: 1 },
});

/** Creates tenants with one Application each. Returns their keys. */
const makeTenants = async (folder: string): Promise<readonly string[]> => {
  const streams = streamNames();
  const log = await sqliteEventLog(folder, streams);
  const keys = await Promise.all(
    Array.from({ length: MANY }, async () => {
      const [tenantId, applicationId] = [randomUUID(), randomUUID()];
      const key = makeKey(tenantId);
      const settings = { fingerprintTokens: false, deduplicateTokens: false };
      const permissions = ['tenant:read', 'tenant:update', 'log:read'];
      const events = [
        event('TenantCreated', {
          name: 'Bench',
          ownerId: randomUUID(),
          settings,
          includedMonthlyActiveTokens: 0,
        }),
        event('ApplicationCreated', {
          applicationId,
          name: 'Bench',
          applicationType: 'management',
          permissions,
        }),
        event('KeyAdded', { keyId: randomUUID(), applicationId, digest: digestOf(key) }),
      ];
      await log.append(streams.tenant(tenantId), events, 'no_stream', 20_000);
      return key;
    }),
  );
  await log.close();
  return keys;
};

const startService = async (root: string, env: Environment) => {
  const folder = mkdtempSync(join(root, 'data-'));
  const keys = await makeTenants(folder);
  const nodeFlags = (process.env['BENCH_NODE'] ?? '').split(' ').filter((word) => word !== '');
  const server = await start(root, [...nodeFlags, MAIN, 'serve'], {
    DATA_DIR: folder,
    RATE_LIMITS: UNREACHABLE_LIMIT,
    ...env,
  });
  return { server, keys };
};

const get = (name: string, path: string): Load => ({ name, method: 'GET', path, connections: MANY });
const put = (name: string, connections: number): Load => ({
  name,
  method: 'PUT',
  path: '/tenants/self',
  connections,
});

const main = async (): Promise<void> => {
  const root = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));
  const bare = { server: await start(root, [__filename, '0', '0', 'hello']), keys: ['none'] };
  const libraries = { server: await start(root, [__filename, '0', '0', 'libraries']), keys: ['none'] };
  const logging = await startService(root, {});
  const quiet = await startService(root, { LOG_LEVEL: 'warn' });
  const loads = new Map([
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
    for (const [load, { server, keys }] of loads) await measure(server, load, keys); // warm-up
    const measured = new Map([...loads.keys()].map((load) => [load, [] as Measured[]]));
    for (let round = 0; round < ROUNDS; round += 1)
      for (const [load, { server, keys }] of loads)
        measured.get(load)?.push(await measure(server, load, keys));
    report(measured);
  } finally {
    for (const { child } of [bare.server, libraries.server, logging.server, quiet.server]) {
      child.kill('SIGTERM');
      await once(child, 'close');
    }
    rmSync(root, { recursive: true, force: true });
  }
};

const [role, url = '', load = '', keys = ''] = process.argv.slice(4);
if (role === 'hello') serveHello();
else if (role === 'libraries') serveLibraries();
else if (role === 'client') void runClient(url, JSON.parse(load) as Load, keys.split(','));
else void main();
