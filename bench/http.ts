import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import Koa from 'koa';

/**
 * What does everything around a read cost? `GET /tenants/self` with everything on, with and without its access log,
 * against a bare Koa that says hello; in one run, round about, the client in a process of its own.
 * `npm run bench:http [ROUNDS] [SECONDS]`
 */
const ROUNDS = Number(process.argv[2] ?? 5);
const SECONDS = Number(process.argv[3] ?? 2);
const CONNECTIONS = 32;
const MAIN = join(__dirname, '..', 'src', 'cli', 'main.js');
/** Counted like any other, but never reached. */
const NEVER = 'global=1000000000';

type Environment = Readonly<Record<string, string>>;

const HELLO = 'Hello';

/** Bare Koa, as its own page begins. */
const serveHello = (): void => {
  const app = new Koa();
  app.use(async (ctx) => {
    ctx.body = HELLO;
  });
  const server = app.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    console.error(JSON.stringify({ msg: 'ready', url: `http://127.0.0.1:${port}` }));
  });
};

/** One connection: a request, its whole answer, the next request, until the time is over. Gives the answers. */
const talk = (url: URL, request: string, until: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true });
    let answers = 0;
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
      answers += 1;
      if (performance.now() < until) return void socket.write(request);
      socket.destroy();
      resolve(answers);
    });
  });

/** In a process of its own: prints how many answers a second it got. */
const runClient = async (url: string, path: string, key: string): Promise<void> => {
  const request = `GET ${path} HTTP/1.1\r\nHost: bench\r\nSVC-API-KEY: ${key}\r\n\r\n`;
  const began = performance.now();
  const until = began + SECONDS * 1_000;
  const answers = await Promise.all(
    Array.from({ length: CONNECTIONS }, () => talk(new URL(url), request, until)),
  );
  const all = answers.reduce((sum, one) => sum + one, 0);
  console.log(all / ((performance.now() - began) / 1_000));
};

interface Running {
  readonly name: string;
  readonly child: ChildProcess;
  readonly url: string;
  readonly path: string;
  readonly key: string;
}

const until = async <T>(look: () => T | undefined): Promise<T> => {
  for (;;) {
    const found = look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

/** The log goes to a file, as it does where the service runs. */
const start = async (
  name: string,
  args: readonly string[],
  path: string,
  env: Environment = {},
): Promise<Running> => {
  const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));
  const [out, log] = [join(folder, 'stdout'), join(folder, 'stderr')];
  const child = spawn(process.execPath, args, {
    env: {
      PATH: process.env['PATH'] ?? '',
      PORT: '0',
      OPS_PORT: '0',
      DATA_DIR: join(folder, 'data'),
      ...env,
    },
    stdio: ['ignore', openSync(out, 'w'), openSync(log, 'w')],
  });
  child.once('close', () => rmSync(folder, { recursive: true, force: true }));
  const url = await until(
    () =>
      /"url":"([^"]+)"/.exec(readFileSync(log, 'utf8'))?.[1] ??
      /serves (\S+)/.exec(readFileSync(out, 'utf8'))?.[1],
  );
  const key =
    path === '/' ? 'none' : await until(() => /key_[0-9A-Za-z]+/.exec(readFileSync(out, 'utf8'))?.[0]);
  return { name, child, url, path, key };
};

/** What the server's process has used of the processors, in seconds; unknown where there is no such file. */
const processorSeconds = ({ child }: Running): number => {
  const file = `/proc/${child.pid}/stat`;
  if (!existsSync(file)) return NaN;
  const fields = readFileSync(file, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
};

interface Measured {
  /** Answers a second, and what the server's process used for one of them, in microseconds. */
  readonly rate: number;
  readonly cost: number;
}

const measure = async (server: Running): Promise<Measured> => {
  const { url, path, key } = server;
  const before = processorSeconds(server);
  const client = spawn(
    process.execPath,
    [__filename, String(ROUNDS), String(SECONDS), 'client', url, path, key],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let told = '';
  client.stdout.on('data', (chunk: Buffer) => (told += chunk.toString()));
  await once(client, 'close');
  const rate = Number(told);
  return { rate, cost: ((processorSeconds(server) - before) * 1e6) / (rate * SECONDS) };
};

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? NaN;

const report = (servers: readonly Running[], measured: ReadonlyMap<string, readonly Measured[]>): void => {
  console.log(
    `${ROUNDS} rounds of ${SECONDS} s, ${CONNECTIONS} connections; load average ${loadavg()[0]?.toFixed(2)}`,
  );
  const bare = measured.get(servers[0]?.name ?? '') ?? [];
  for (const [name, each] of measured) {
    const ratio = median(each.map(({ rate }, round) => rate / (bare[round]?.rate ?? NaN)));
    const byCost = median(each.map(({ cost }, round) => (bare[round]?.cost ?? NaN) / cost));
    const rate = median(each.map((one) => one.rate)).toFixed(0);
    const cost = median(each.map((one) => one.cost)).toFixed(1);
    console.log(
      `${name.padEnd(20)} ${rate.padStart(6)} answers/s, ${ratio.toFixed(2)} of bare Koa; ${cost} µs of processor each, ${byCost.toFixed(2)}`,
    );
  }
};

const main = async (): Promise<void> => {
  const env = { RATE_LIMITS: NEVER };
  const profiling = (process.env['BENCH_NODE'] ?? '').split(' ').filter((word) => word !== '');
  const serve = [...profiling, MAIN, 'serve'];
  const servers: Running[] = [];
  try {
    servers.push(await start('bare Koa hello', [__filename, '0', '0', 'hello'], '/'));
    servers.push(await start('with the access log', serve, '/tenants/self', env));
    servers.push(await start('without', serve, '/tenants/self', { ...env, LOG_LEVEL: 'warn' }));
    for (const server of servers) await measure(server); // warm
    const measured = new Map(servers.map(({ name }) => [name, [] as Measured[]]));
    for (let round = 0; round < ROUNDS; round += 1)
      for (const server of servers) measured.get(server.name)?.push(await measure(server));
    report(servers, measured);
  } finally {
    for (const { child } of servers) {
      child.kill('SIGTERM');
      await once(child, 'close');
    }
  }
};

const [role, ...rest] = process.argv.slice(4);
if (role === 'hello') serveHello();
else if (role === 'client') void runClient(...(rest as [string, string, string]));
else void main();
