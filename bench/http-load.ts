import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { printFigures } from './builds';
import { makeLog } from './given-log';
import { MAIN, startServer, usedBy, type Environment, type Running } from './processes';

/** Clients in processes of their own, for benchmarks over HTTP. */

export const MANY = 32;
/** A rate limit that is counted like any other, but never reached. */
const UNREACHABLE_LIMIT = 'global=1000000000';

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

/** Runs in its own process, and prints the number of responses and the seconds that they took. */
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
  console.log(JSON.stringify([total, (performance.now() - began) / 1_000]));
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
  const before = usedBy(server.pid).processorSeconds;
  const client = spawn(
    process.execPath,
    [__filename, server.url, JSON.stringify(load), keys.join(), String(seconds)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let printed = '';
  client.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  await once(client, 'close');
  const [responses, taken] = JSON.parse(printed) as [number, number];
  const used = usedBy(server.pid).processorSeconds - before;
  return { rate: responses / taken, cost: (used * 1e6) / responses };
};

/** The service, possibly of another build. */
export const startService = async (root: string, env: Environment, main = MAIN): Promise<Target> => {
  const given = { DATA_DIR: mkdtempSync(join(root, 'data-')), ...env };
  const customers = await makeLog(given, { tenants: MANY }, main);
  const server = await startServer({ RATE_LIMITS: UNREACHABLE_LIMIT, ...given }, main);
  return { server, keys: customers.map(({ key }) => key) };
};

export const get = (name: string, path: string): Load => ({ name, method: 'GET', path, connections: MANY });
export const put = (name: string, connections: number): Load => ({
  name,
  method: 'PUT',
  path: '/tenants/self',
  connections,
});

/** All take turns, after a warm-up. Prints every run. */
export const measureByTurns = async (
  targets: ReadonlyMap<Load, Target>,
  rounds: number,
  seconds: number,
): Promise<ReadonlyMap<Load, readonly Measured[]>> => {
  for (const [load, target] of targets) await measure(target, load, seconds);
  const measured = new Map([...targets.keys()].map((load) => [load, [] as Measured[]]));
  for (let round = 0; round < rounds; round += 1)
    for (const [load, target] of targets) {
      const result = await measure(target, load, seconds);
      measured.get(load)?.push(result);
      const { name, connections } = load;
      printFigures(`${name}, ${connections} connections, run ${round + 1}`, {
        'per second': result.rate,
        'µs of processor': result.cost,
      });
    }
  return measured;
};

if (require.main === module) {
  const [url = '', load = '', keys = '', seconds = ''] = process.argv.slice(2);
  void runClient(url, JSON.parse(load) as Load, keys.split(','), Number(seconds));
}
