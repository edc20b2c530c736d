import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { HostedCommand } from './command-host';
import { hasHeaderPrefix, isNotTheApi } from './described';
import { freshFolder } from './folders';
import { until } from './waiting';
import { logOf, readModelsOf } from './log-under-test';

/** The program as its users run it: real processes on real files. */
const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');
const HOST = join(__dirname, 'command-host.js');

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
const { commandHosts: idleHosts = [] } = globalThis as { commandHosts?: ChildProcess[] };

const takeHost = (): ChildProcess => {
  const host =
    idleHosts.pop() ??
    fork(HOST, { execArgv: ['--expose-gc'], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  host.ref();
  host.channel?.ref();
  return keepTrackOf(host);
};

/** An idle host neither keeps the tests from ending nor holds anything of this file. */
const putBack = (host: ChildProcess): void => {
  running.delete(host);
  host.removeAllListeners();
  host.unref();
  host.channel?.unref();
  idleHosts.push(host);
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
  const host = takeHost();
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
  putBack(host);
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

/** Starts a server on free ports and waits until it is ready. */
export const startService = async (env: Environment = {}, main = MAIN): Promise<Service> => {
  const folder = env['DATA_DIR'] ?? freshFolder();
  const free = { PORT: '0', OPS_PORT: '0', DATA_DIR: folder };
  const child = spawnProgram(['serve'], { ...free, ...UNLIMITED, ...env }, main);
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = once(child, 'close').then(([code]) => code as number | null);
  const ready = new Promise<void>((resolve) => {
    child.stdout?.on('data', () => {
      if (/\n\n {2}\S.*\n\n$/s.test(stdout)) resolve();
    });
  });
  const early = ended.then((code) => {
    throw new Error(`The server ended with ${code} before it was ready: ${stderr}`);
  });
  early.catch(() => undefined);
  await Promise.race([ready, early]);
  const line = stderr.split('\n').find((text) => text.includes('"msg":"ready"')) ?? '{}';
  const { url, operations } = JSON.parse(line) as { url: string; operations: string };
  hasHeaderPrefix(url, env['HEADER_PREFIX'] ?? 'SVC');
  isNotTheApi(operations);
  return {
    url,
    operationsUrl: operations,
    folder,
    process: child,
    key: /key_[0-9A-Za-z]+/.exec(stdout)?.[0] ?? '',
    stdout: () => stdout,
    stderr: () => stderr,
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
};

afterAll(() => {
  for (const child of running) child.kill('SIGKILL');
});
