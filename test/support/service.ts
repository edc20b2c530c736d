import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { orUndefined } from '../../src/clock';
import type { HostedCommand } from './command-host';
import { hasHeaderPrefix, isNotTheApi } from './described';
import { freshFolder } from './folders';
import { END, type HostedService } from './hosting';
import { logOf, readModelsOf } from './log-under-test';

import { until } from './waiting';

/** The program as its users run it: real processes on real files. */
const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');
const HOST = join(__dirname, 'command-host.js');
const SERVICE_HOST = join(__dirname, 'service-host.js');

type Environment = Readonly<Record<string, string>>;

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const running = new Set<ChildProcess>();

const keepTrackOf = (child: ChildProcess): ChildProcess => {
  running.add(child);
  child.once('close', () => running.delete(child));
  return child;
};

const environmentOf = (env: Environment): Environment => ({
  PATH: process.env['PATH'] ?? '',
  ...logOf(env['DATA_DIR'] ?? ''),
  ...readModelsOf(env['DATA_DIR'] ?? ''),
  ...env,
});

/** Another build of the program may be named, and where its output goes. */
export const spawnProgram = (
  args: readonly string[],
  env: Environment,
  main = MAIN,
  stdout: 'pipe' | number = 'pipe',
): ChildProcess =>
  keepTrackOf(
    spawn(process.execPath, [main, ...args], { env: environmentOf(env), stdio: ['pipe', stdout, 'pipe'] }),
  );

/** Runs one command to its end, in its own process. */
export const commandProcess = async (
  args: readonly string[],
  env: Environment,
  main = MAIN,
): Promise<Finished> => {
  const child = spawnProgram(args, env, main);
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
};

/** The hosts of the test environment outlive this test file. */
const { commandHosts = [], serviceHosts = [] } = globalThis as {
  commandHosts?: ChildProcess[];
  serviceHosts?: ChildProcess[];
};

const outputsOf = ({ stdout, stderr }: ChildProcess): Socket[] =>
  [stdout, stderr].filter((stream) => stream !== null) as Socket[];

const takeHost = (idle: ChildProcess[], file: string, output: 'inherit' | 'pipe'): ChildProcess => {
  const host =
    idle.pop() ?? fork(file, { execArgv: ['--expose-gc'], stdio: ['ignore', output, output, 'ipc'] });
  for (const each of [host, host.channel, ...outputsOf(host)]) each?.ref();
  return keepTrackOf(host);
};

/** An idle host neither keeps the tests from ending nor holds anything of this file. */
const putBack = (host: ChildProcess, idle: ChildProcess[]): void => {
  running.delete(host);
  host.removeAllListeners();
  for (const output of outputsOf(host)) output.removeAllListeners('data');
  for (const each of [host, host.channel, ...outputsOf(host)]) each?.unref();
  idle.push(host);
};

/**
 * Runs one command to its end, in a process that has run commands before. Concurrent commands run in different
 * processes.
 */
export const command = async (
  args: readonly string[],
  env: Environment,
  input?: string,
): Promise<Finished> => {
  const host = takeHost(commandHosts, HOST, 'inherit');
  const finished = new Promise<Finished>((resolve, reject) => {
    const onClose = (code: number | null): void =>
      reject(new Error(`The process that ran ${args.join(' ')} ended with ${code}.`));
    host.once('close', onClose);
    host.once('message', (message) => {
      host.off('close', onClose);
      resolve(message as Finished);
    });
  });
  host.send({
    args,
    env: environmentOf(env),
    ...(input === undefined ? {} : { input }),
  } satisfies HostedCommand);
  const result = await finished;
  putBack(host, commandHosts);
  return result;
};

/** Runs one command that must succeed and prints JSON. */
export const commandJson = async <T = Record<string, string>>(
  args: readonly string[],
  env: Environment,
): Promise<T> => {
  const { code, stdout, stderr } = await command([...args, '--json'], env);
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as T;
};

export interface Service {
  readonly url: string;
  readonly operationsUrl: string;
  readonly folder: string;
  readonly process: ChildProcess;
  /** The key that a first start prints. */
  readonly key: string;
  stdout(): string;
  stderr(): string;
  /** Sends SIGTERM and waits. Returns the exit code. */
  stop(): Promise<number | null>;
  /** Sends SIGKILL and waits. */
  kill(): Promise<void>;
}

/** Waits until every projection has caught up: logs and usage are projected by their own workers. */
export const allProjected = ({ operationsUrl }: Pick<Service, 'operationsUrl'>): Promise<void> =>
  until(async () => {
    const response = await fetch(`${operationsUrl}/readyz`);
    const { projections = [] } = (await response.json()) as { projections?: { lag_events: number }[] };
    return response.ok && projections.length > 0 && projections.every(({ lag_events }) => lag_events === 0);
  });

/** Tests send more requests than a client may: those about limits set their own (an empty setting: as specified). */
const UNLIMITED = { RATE_LIMITS: 'off' };

/** What the program prints from now on. */
const outputOf = (child: ChildProcess) => {
  const texts = ['', ''];
  const ended = outputsOf(child).map(
    (stream, at) =>
      new Promise<void>((resolve) => {
        stream.on('data', (chunk: Buffer) => {
          texts[at] += chunk.toString().replace(END, '');
          if (chunk.at(-1) === END.charCodeAt(0)) resolve();
        });
      }),
  );
  return {
    stdout: () => texts[0] ?? '',
    stderr: () => texts[1] ?? '',
    /** When a server has ended whose process goes on. */
    ended: Promise.all(ended),
  };
};

type Output = ReturnType<typeof outputOf>;

/** The service in a process that was started or asked to serve, once it is ready. */
const whenReady = async (
  child: ChildProcess,
  env: Environment,
  { stdout, stderr }: Output,
  ended: Promise<number | null>,
): Promise<Service> => {
  let isOver = false;
  /** A signal that comes too late might reach the service of another test file. */
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (!isOver) child.kill(signal);
    return ended;
  };
  const ready = new Promise<void>((resolve) => {
    child.stdout?.on('data', () => {
      if (/\n\n {2}\S.*\n\n$/s.test(stdout())) resolve();
    });
  });
  const early = ended.then((code) => {
    isOver = true;
    throw new Error(`The server ended with ${code} before it was ready: ${stderr()}`);
  });
  early.catch(() => undefined);
  await Promise.race([ready, early]);
  const line = stderr()
    .split('\n')
    .find((text) => text.includes('"msg":"ready"'));
  const { url, operations } = JSON.parse(line ?? '{}') as { url: string; operations: string };
  hasHeaderPrefix(url, env['HEADER_PREFIX'] ?? 'SVC');
  isNotTheApi(operations);
  return {
    url,
    operationsUrl: operations,
    folder: env['DATA_DIR'] ?? '',
    process: child,
    key: /key_[0-9A-Za-z]+/.exec(stdout())?.[0] ?? '',
    stdout,
    stderr,
    stop: () => end('SIGTERM'),
    kill: async () => void (await end('SIGKILL')),
  };
};

/** On free ports. */
const servingIn = (env: Environment): Environment => ({
  PORT: '0',
  OPS_PORT: '0',
  DATA_DIR: env['DATA_DIR'] ?? freshFolder(),
  ...UNLIMITED,
  ...env,
});

const closed = (child: ChildProcess): Promise<number | null> =>
  once(child, 'close').then(([code]) => code as number | null);

/** Starts a server in its own process and waits until it is ready. Another build of the program may be named. */
export const serviceProcess = (env: Environment = {}, main = MAIN): Promise<Service> => {
  const serving = servingIn(env);
  const child = spawnProgram(['serve'], serving, main);
  return whenReady(child, serving, outputOf(child), closed(child));
};

/** Starts a server that may have only so many files and connections open. */
export const serviceWithFewFiles = (openFiles: number, env: Environment = {}): Promise<Service> => {
  const serving = servingIn(env);
  const limited = ['-c', `ulimit -n ${openFiles} && exec "$@"`, 'sh', process.execPath, MAIN, 'serve'];
  const child = keepTrackOf(spawn('/bin/sh', limited, { env: environmentOf(serving), stdio: 'pipe' }));
  return whenReady(child, serving, outputOf(child), closed(child));
};

const stopping = new Map<ChildProcess, Promise<unknown>>();
const stoppedHosts: ChildProcess[] = [];

/**
 * Starts a server and waits until it is ready. Its process may have run servers of other test files before, but none of
 * this one: what is there after a restart was stored.
 */
export const startService = (env: Environment = {}): Promise<Service> => {
  if ('NODE_OPTIONS' in env) throw new Error('Node reads its options only at the start of a process.');
  const serving = servingIn(env);
  const host = takeHost(serviceHosts, SERVICE_HOST, 'pipe');
  const output = outputOf(host);
  const stopped = output.ended.then(() => {
    stopping.delete(host);
    putBack(host, stoppedHosts);
    return 0;
  });
  const ended = Promise.race([closed(host), stopped]);
  stopping.set(host, ended);
  host.send({ env: environmentOf(serving) } satisfies HostedService);
  return whenReady(host, serving, output, ended);
};

/** A service that takes longer to stop is killed. */
const STOP_MS = 2_000;
const MAX_IDLE = 3;

afterAll(async () => {
  for (const child of running) child.kill(stopping.has(child) ? 'SIGTERM' : 'SIGKILL');
  await orUndefined(Promise.all(stopping.values()), STOP_MS);
  serviceHosts.push(...stoppedHosts);
  for (const child of [...running, ...serviceHosts.splice(MAX_IDLE)]) child.kill('SIGKILL');
});
