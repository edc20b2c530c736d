import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import type { NewEvent } from '../src/event-log/event-log';
import { eventStoreDbEventLog } from '../src/event-log/eventstoredb/eventstoredb-event-log';
import { sqliteEventLog } from '../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../src/event-log/streams';
import { digestOf, makeKey } from '../src/ledger/api-key';

/** Servers and clients in processes of their own, for benchmarks over HTTP. */

export const MANY = 32;
const MAIN = join(__dirname, '..', 'src', 'cli', 'main.js');
/** A rate limit that is counted like any other, but never reached. */
const UNREACHABLE_LIMIT = 'global=1000000000';

type Environment = Readonly<Record<string, string>>;

/** The request that a client repeats. Each connection uses its own key, if there are enough. */
export interface Load {
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
const runClient = async (
  url: string,
  load: Load,
  keys: readonly string[],
  seconds: number,
): Promise<void> => {
  const began = performance.now();
  const until = began + seconds * 1_000;
  const responses = await Promise.all(
    Array.from({ length: load.connections }, (_, at) =>
      repeatRequest(new URL(url), requestOf(load, keys[at % keys.length] ?? ''), until),
    ),
  );
  const total = responses.reduce((sum, count) => sum + count, 0);
  console.log(total / ((performance.now() - began) / 1_000));
};

export interface Running {
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
export const start = async (
  folder: string,
  args: readonly string[],
  env: Environment = {},
): Promise<Running> => {
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

export interface Measured {
  /** Responses per second. */
  readonly rate: number;
  /** Microseconds of CPU time of the server process per response. */
  readonly cost: number;
}

/** A server and the keys to use with it. */
export interface Target {
  readonly server: Running;
  readonly keys: readonly string[];
}

const measure = async ({ server, keys }: Target, load: Load, seconds: number): Promise<Measured> => {
  const before = processorSeconds(server);
  const client = spawn(
    process.execPath,
    [__filename, server.url, JSON.stringify(load), keys.join(), String(seconds)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let printed = '';
  client.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  await once(client, 'close');
  const rate = Number(printed);
  return { rate, cost: ((processorSeconds(server) - before) * 1e6) / (rate * seconds) };
};

export const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? NaN;

const event = (type: string, data: NewEvent['data']): NewEvent => ({
  id: randomUUID(),
  type,
  data,
  metadata: { version: 1 },
});

/** Creates tenants with one Application each. Returns their keys. */
const makeTenants = async (folder: string, env: Environment): Promise<readonly string[]> => {
  const { EVENTSTORE_URL: url, STREAM_PREFIX: prefix } = env;
  const streams = streamNames(prefix);
  const log = await (url === undefined
    ? sqliteEventLog(folder, streams)
    : eventStoreDbEventLog(url, streams, { waitMs: 10_000, onError: (what) => console.log(what) }));
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

/** The service, possibly of another build. */
export const startService = async (root: string, env: Environment, main = MAIN): Promise<Target> => {
  const folder = mkdtempSync(join(root, 'data-'));
  const keys = await makeTenants(folder, env);
  const nodeFlags = (process.env['BENCH_NODE'] ?? '').split(' ').filter((word) => word !== '');
  const server = await start(root, [...nodeFlags, main, 'serve'], {
    DATA_DIR: folder,
    RATE_LIMITS: UNREACHABLE_LIMIT,
    ...env,
  });
  return { server, keys };
};

export const get = (name: string, path: string): Load => ({ name, method: 'GET', path, connections: MANY });
export const put = (name: string, connections: number): Load => ({
  name,
  method: 'PUT',
  path: '/tenants/self',
  connections,
});

/** All take turns, after a warm-up. */
export const measureByTurns = async (
  targets: ReadonlyMap<Load, Target>,
  rounds: number,
  seconds: number,
): Promise<ReadonlyMap<Load, readonly Measured[]>> => {
  for (const [load, target] of targets) await measure(target, load, seconds);
  const measured = new Map([...targets.keys()].map((load) => [load, [] as Measured[]]));
  for (let round = 0; round < rounds; round += 1)
    for (const [load, target] of targets) measured.get(load)?.push(await measure(target, load, seconds));
  return measured;
};

export const loadLine = (rounds: number, seconds: number): string =>
  `${rounds} rounds of ${seconds} s; load average ${loadavg()[0]?.toFixed(2)}`;

export const stopAll = async (servers: readonly Running[]): Promise<void> => {
  for (const { child } of servers) {
    child.kill('SIGTERM');
    await once(child, 'close');
  }
};

if (require.main === module) {
  const [url = '', load = '', keys = '', seconds = ''] = process.argv.slice(2);
  void runClient(url, JSON.parse(load) as Load, keys.split(','), Number(seconds));
}
