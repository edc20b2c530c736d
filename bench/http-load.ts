import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { at, printFigures } from './builds';
import { makeLog } from './given-log';
import { MAIN, startServer, usedBy, type Environment, type Running } from './processes';

/** Clients in processes of their own, for benchmarks over HTTP. */

export const MANY = 32;
/** A rate limit that is counted like any other, but never reached. */
const UNREACHABLE_LIMIT = 'global=1000000000';

/** The request that a client repeats. Each connection uses its own key, if there are enough. */
export interface Load {
  readonly name: string;
  readonly method: 'GET' | 'PUT' | 'POST';
  readonly path: string;
  readonly connections: number;
  /** A POST has this one in its header, and asks in its body about the keys of the target, one after the other. */
  readonly serviceKey?: string;
}

const headOf = ({ method, path }: Load, key: string): string =>
  `${method} ${path} HTTP/1.1\r\nHost: bench\r\nSVC-API-KEY: ${key}\r\n`;

const withBody = (head: string, body: string): string =>
  `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

/** Every PUT changes the name, in a request of the same length. */
const requestsOf = (load: Load, keys: readonly string[], connection: number): ((n: number) => string) => {
  const head = headOf(load, load.serviceKey ?? keys[connection % keys.length] ?? '');
  if (load.method === 'GET') return () => `${head}\r\n`;
  if (load.method === 'POST')
    return (n) => withBody(head, `{"key":"${keys[(connection + n * load.connections) % keys.length]}"}`);
  const settings = '{"deduplicate_tokens":"true"}';
  return (n) => withBody(head, `{"name":"Bench ${String(n).padStart(7, '0')}","settings":${settings}}`);
};

interface Responses {
  /** Milliseconds that each took. */
  readonly times: number[];
  /** How many said that they are not shown yet, or not completely. */
  late: number;
  /** How many were 503, and are in no other number. */
  refused: number;
}

const LATE = /^[a-z-]+-(?:read-pending|complete-until):/im;

/** Sends one request after the other over one connection until the time is up. */
const repeatRequest = (url: URL, request: (n: number) => string, until: number): Promise<Responses> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true });
    const responses: Responses = { times: [], late: 0, refused: 0 };
    let received = '';
    let [sent, sentAt] = [0, 0];
    const send = (): void => {
      sentAt = performance.now();
      socket.write(request((sent += 1)));
    };
    socket.setEncoding('latin1');
    socket.on('connect', send);
    socket.on('error', reject);
    socket.on('data', (chunk: string) => {
      received += chunk;
      const head = received.indexOf('\r\n\r\n');
      if (head < 0) return;
      const length = Number(/content-length: ([0-9]+)/i.exec(received)?.[1]);
      if (received.length < head + 4 + length) return;
      const [status, now] = [received.slice(9, 12), performance.now()];
      if (status === '503') responses.refused += 1;
      else if (status === '200') responses.times.push(now - sentAt);
      else return reject(new Error(received));
      if (LATE.test(received.slice(0, head))) responses.late += 1;
      received = '';
      if (now < until) return send();
      socket.destroy();
      resolve(responses);
    });
  });

/** Runs in its own process, and prints what it measured. */
const runClient = async (
  url: string,
  load: Load,
  keys: readonly string[],
  seconds: number,
): Promise<void> => {
  const began = performance.now();
  const until = began + seconds * 1_000;
  const all = await Promise.all(
    Array.from({ length: load.connections }, (_, n) =>
      repeatRequest(new URL(url), requestsOf(load, keys, n), until),
    ),
  );
  const times = all.flatMap((one) => one.times);
  const [late, refused] = (['late', 'refused'] as const).map((kind) =>
    all.reduce((sum, one) => sum + one[kind], 0),
  ) as [number, number];
  const rate = (times.length * 1_000) / (performance.now() - began);
  const seen: Seen = { count: times.length, rate, p50: at(times, 0.5), p99: at(times, 0.99), late, refused };
  console.log(JSON.stringify(seen));
};

/** What the clients of a load saw. */
interface Seen {
  readonly count: number;
  /** Responses per second. */
  readonly rate: number;
  /** Milliseconds of a response. */
  readonly p50: number;
  readonly p99: number;
  /** How many said that they are not shown yet, or not completely. */
  readonly late: number;
  /** How many were 503, and are in no other number. */
  readonly refused: number;
}

export interface Measured extends Seen {
  /** Microseconds of CPU time of the server process per response. */
  readonly cost: number;
}

/** A server and the keys to use with it. */
export interface Target {
  readonly server: Running;
  readonly keys: readonly string[];
}

export const measureLoad = async (
  { server, keys }: Target,
  load: Load,
  seconds: number,
): Promise<Measured> => {
  const before = usedBy(server.pid).processorSeconds;
  const client = spawn(
    process.execPath,
    [__filename, server.url, JSON.stringify(load), keys.join(), String(seconds)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let printed = '';
  client.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  await once(client, 'close');
  const seen = JSON.parse(printed) as Seen;
  const used = usedBy(server.pid).processorSeconds - before;
  return { ...seen, cost: (used * 1e6) / seen.count };
};

/** The service, possibly of another build, with as many tenants. */
export const startService = async (
  root: string,
  env: Environment,
  main = MAIN,
  tenants = MANY,
): Promise<Target> => {
  const given = { DATA_DIR: mkdtempSync(join(root, 'data-')), ...env };
  const customers = await makeLog(given, { tenants }, main);
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
  for (const [load, target] of targets) await measureLoad(target, load, seconds);
  const measured = new Map([...targets.keys()].map((load) => [load, [] as Measured[]]));
  for (let round = 0; round < rounds; round += 1)
    for (const [load, target] of targets) {
      const result = await measureLoad(target, load, seconds);
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
