import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pause } from '../src/async/clock';
import { freePort } from '../test/support/free-port';

/** Processes of this build, or of another one, on data of their own. */

export const MAIN = join(__dirname, '..', 'src', 'cli', 'main.js');

export type Environment = Readonly<Record<string, string>>;

const running = new Set<ChildProcess>();
process.once('exit', () => running.forEach((child) => child.kill('SIGKILL')));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

/** What is running when a benchmark fails ends with it. */
const endsWithThis = (child: ChildProcess): ChildProcess => {
  running.add(child);
  child.once('close', () => running.delete(child));
  return child;
};

const nodeFlags = (): readonly string[] =>
  (process.env['BENCH_NODE'] ?? '').split(' ').filter((word) => word !== '');

/** What a process has used so far. NaN without `/proc`. */
export interface Used {
  readonly processorSeconds: number;
  /** Megabytes in memory now, and at most. */
  readonly memory: number;
  readonly mostMemory: number;
  readonly writtenBytes: number;
}

const fileOf = (pid: number, name: string): string => {
  const file = `/proc/${pid}/${name}`;
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
};

export const usedBy = (pid: number): Used => {
  const times = fileOf(pid, 'stat').split(') ')[1]?.split(' ') ?? [];
  const status = fileOf(pid, 'status');
  const megabytes = (name: string): number =>
    Number(new RegExp(`${name}:\\s+([0-9]+) kB`).exec(status)?.[1]) / 1_024;
  return {
    processorSeconds: (Number(times[11]) + Number(times[12])) / 100,
    memory: megabytes('VmRSS'),
    mostMemory: megabytes('VmHWM'),
    writtenBytes: Number(/^write_bytes: ([0-9]+)/m.exec(fileOf(pid, 'io'))?.[1]),
  };
};

const SAMPLE_MS = 20;

export interface Ran {
  readonly stdout: string;
  readonly seconds: number;
  readonly used: Used;
}

/** Runs a command, which must succeed. */
export const runToEnd = async (args: readonly string[], env: Environment, main = MAIN): Promise<Ran> => {
  const began = performance.now();
  const child = endsWithThis(
    spawn(process.execPath, [...nodeFlags(), main, ...args], {
      env: { PATH: process.env['PATH'] ?? '', ...env },
    }),
  );
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.on('data', (chunk: Buffer) => (output[name] += chunk.toString()));
  let used = usedBy(child.pid ?? 0);
  const sampling = setInterval(() => {
    const now = usedBy(child.pid ?? 0);
    if (now.mostMemory > 0) used = now;
  }, SAMPLE_MS);
  const [code] = (await once(child, 'close')) as [number | null];
  clearInterval(sampling);
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${output.stderr}`);
  return { stdout: output.stdout, seconds: (performance.now() - began) / 1_000, used };
};

export interface Running {
  readonly pid: number;
  readonly url: string;
  stop(): Promise<void>;
}

const stopping = (child: ChildProcess, folder: string) => async (): Promise<void> => {
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  await closed;
  rmSync(folder, { recursive: true, force: true });
};

const START_MS = 180_000;

/** Looks until something is found. Its output goes to a file, as in production. */
const startProcess = async <T>(
  args: readonly string[],
  env: Environment,
  look: (stdout: string) => Promise<T | undefined> | T | undefined,
): Promise<T & Pick<Running, 'pid' | 'stop'>> => {
  const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));
  const [stdout, stderr] = [join(folder, 'stdout'), join(folder, 'stderr')];
  const child = endsWithThis(
    spawn(process.execPath, [...nodeFlags(), ...args], {
      env: { PATH: process.env['PATH'] ?? '', ...env },
      stdio: ['ignore', openSync(stdout, 'w'), openSync(stderr, 'w')],
    }),
  );
  const began = performance.now();
  for (let looks = 0; performance.now() - began < START_MS; looks += 1) {
    await pause(looks < FREQUENT_LOOKS ? LOOK_MS : CATCH_UP_LOOK_MS);
    const found = await look(readFileSync(stdout, 'utf8'));
    if (found !== undefined) return { ...found, pid: child.pid ?? 0, stop: stopping(child, folder) };
    if (child.exitCode !== null) break;
  }
  throw new Error(`${args.join(' ')} did not start: ${readFileSync(stderr, 'utf8').slice(-2_000)}`);
};

const LOOK_MS = 10;
const FREQUENT_LOOKS = 200;
/** `/readyz` reads from the log while the read models are behind, which takes its time. */
const CATCH_UP_LOOK_MS = 100;

/** A program that prints where it serves. */
export const startPrinting = (args: readonly string[]): Promise<Running> =>
  startProcess(args, {}, (stdout) => {
    const url = /serves (\S+)/.exec(stdout)?.[1];
    return url === undefined ? undefined : { url };
  });

export interface Server extends Running {
  readonly operationsUrl: string;
  /** From the start of the process until `/readyz` first answers 200. */
  readonly readyMs: number;
}

/** Starts a server on free ports, and waits until it is ready. */
export const startServer = async (env: Environment, main = MAIN): Promise<Server> => {
  const ports = { PORT: await freePort(), OPS_PORT: await freePort() };
  const url = `http://127.0.0.1:${ports.PORT}`;
  const operationsUrl = `http://127.0.0.1:${ports.OPS_PORT}`;
  const began = performance.now();
  return startProcess([main, 'serve'], { DEMO: 'false', ...ports, ...env }, async () => {
    const status = await fetch(`${operationsUrl}/readyz`).then(
      async (response) => {
        await response.arrayBuffer();
        return response.status;
      },
      () => 0,
    );
    return status === 200 ? { url, operationsUrl, readyMs: performance.now() - began } : undefined;
  });
};

interface Lag {
  readonly lag_events: number;
}

/** As `/readyz` shows it: for each projection in earlier builds. Undefined: it does not know. */
const lagOf = async ({ operationsUrl }: Server): Promise<number | undefined> => {
  const response = await fetch(`${operationsUrl}/readyz`);
  const { read_models, projections } = (await response.json()) as {
    readonly read_models?: Lag;
    readonly projections?: readonly Lag[];
  };
  const lags = (read_models === undefined ? (projections ?? []) : [read_models]).map(
    ({ lag_events }) => lag_events,
  );
  return response.status === 200 && lags.length > 0 ? Math.max(...lags) : undefined;
};

/** Waits until the read models show everything in the log. */
export const caughtUp = async (server: Server): Promise<void> => {
  while ((await lagOf(server)) !== 0) await pause(CATCH_UP_LOOK_MS);
};
