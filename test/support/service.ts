import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pause } from '../../src/async/clock';
import type { Times } from '../../src/times';
import { beforeTests } from './before-tests';
import { run, type Running } from './command-line';
import { hasHeaderPrefix, isNotTheApi } from './described';
import { beforeRemoval, freshFolder } from './folders';
import { storesOf } from './profile';
import { until } from './waiting';

/** The program, in the process of the tests or in one of its own. */
const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');

type Environment = Readonly<Record<string, string>>;

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const children = new Set<ChildProcess>();

const keepTrackOf = (child: ChildProcess): ChildProcess => {
  children.add(child);
  child.once('close', () => children.delete(child));
  return child;
};

const environmentOf = (env: Environment): Environment => ({
  PATH: process.env['PATH'] ?? '',
  ...storesOf(env['DATA_DIR'] ?? ''),
  ...env,
});

export const spawnProgram = (
  args: readonly string[],
  env: Environment,
  main = MAIN,
  stdout: 'pipe' | number = 'pipe',
): ChildProcess =>
  keepTrackOf(
    spawn(process.execPath, [main, ...args], { env: environmentOf(env), stdio: ['pipe', stdout, 'pipe'] }),
  );

/** What a process has written so far. */
export const outputsOf = (child: ChildProcess): Outputs => {
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  return { stdout: () => stdout, stderr: () => stderr };
};

export const commandProcess = async (args: readonly string[], env: Environment, main = MAIN) => {
  const child = spawnProgram(args, env, main);
  const { stdout, stderr } = outputsOf(child);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout: stdout(), stderr: stderr() };
};

export const startCommand = (
  args: readonly string[],
  env: Environment,
  options?: { readonly isTerminal?: boolean; readonly times?: Times },
): Running => run(args, environmentOf(env), options);

export const command = async (
  args: readonly string[],
  env: Environment,
  input = '',
  options: { readonly times?: Times } = {},
): Promise<Finished> => {
  const running = startCommand(args, env, options);
  running.stdin.end(input);
  const code = await running.done;
  return { code, stdout: running.stdout(), stderr: running.stderr() };
};

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
  /** The key that a first start prints. */
  readonly key: string;
  stdout(): string;
  stderr(): string;
  readonly ended: Promise<number | null>;
  stop(): Promise<number | null>;
}

export interface ServiceProcess extends Service {
  readonly process: ChildProcess;
  kill(): Promise<void>;
}

export const loggedBy = (
  { stderr }: Pick<Service, 'stderr'>,
  text: string,
): readonly Readonly<Record<string, unknown>>[] =>
  stderr()
    .split('\n')
    .slice(0, -1)
    .filter((line) => line.includes(text))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

export const allProjected = ({ operationsUrl }: Pick<Service, 'operationsUrl'>): Promise<void> =>
  until(async () => {
    const response = await fetch(`${operationsUrl}/readyz`);
    const { read_models } = (await response.json()) as { read_models?: { lag_events: number } };
    return response.ok && read_models?.lag_events === 0;
  });

/** Tests send more requests than a client may: those about limits set their own (an empty setting: as specified). */
const UNLIMITED = { RATE_LIMITS: 'off' };

const servingIn = (env: Environment): Environment => ({
  PORT: '0',
  OPS_PORT: '0',
  DEMO: 'true',
  DATA_DIR: env['DATA_DIR'] ?? freshFolder(),
  ...UNLIMITED,
  ...env,
});

type Outputs = Pick<Service, 'stdout' | 'stderr'>;

const readyService = (env: Environment, { stdout, stderr }: Outputs): Omit<Service, 'stop' | 'ended'> => {
  const line = stderr()
    .split('\n')
    .find((text) => text.includes('"msg":"ready"'));
  const { url, operations } = JSON.parse(line ?? '{}') as { url: string; operations: string };
  hasHeaderPrefix(url, env['HEADER_PREFIX'] ?? 'SVC');
  isNotTheApi(operations);
  const key = /key_[0-9A-Za-z]+/.exec(stdout())?.[0] ?? '';
  return { url, operationsUrl: operations, folder: env['DATA_DIR'] ?? '', key, stdout, stderr };
};

/** A start that takes longer hangs, and says why in its log. */
const READY_MS = 75_000;

const whenReady = async (child: ChildProcess, env: Environment): Promise<ServiceProcess> => {
  const outputs = outputsOf(child);
  const { stdout, stderr } = outputs;
  const ready = new Promise<void>((resolve) => {
    const look = (): void => {
      if (/serves http.*\n\n$/s.test(stdout()) && /"msg":"ready"}\n/.test(stderr())) resolve();
    };
    child.stdout?.on('data', look);
    child.stderr?.on('data', look);
  });
  const closed = once(child, 'close').then(([code]) => code as number | null);
  const early = closed.then((code) => {
    throw new Error(`The server ended with ${code} before it was ready: ${stderr()}`);
  });
  early.catch(() => undefined);
  const started = new AbortController();
  const late = pause(READY_MS, started.signal).then(() => {
    throw new Error(`The server was not ready within ${READY_MS} ms: ${stderr()}`);
  });
  late.catch(() => undefined);
  await Promise.race([ready, early, late]).finally(() => started.abort());
  const end = (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal);
    return closed;
  };
  return {
    ...readyService(env, outputs),
    process: child,
    ended: closed,
    stop: () => end('SIGTERM'),
    kill: async () => void (await end('SIGKILL')),
  };
};

export const serviceProcess = (env: Environment = {}, main = MAIN): Promise<ServiceProcess> => {
  const serving = servingIn(env);
  return whenReady(spawnProgram(['serve'], serving, main), serving);
};

const services = new Set<Service>();

export const startService = async (env: Environment = {}, times?: Times): Promise<Service> => {
  const serving = servingIn(env);
  const running = startCommand(['serve'], serving, times === undefined ? {} : { times });
  const code = await running.done;
  if (code !== 0) throw new Error(`The server ended with ${code} before it was ready: ${running.stderr()}`);
  let stopped: Promise<number> | undefined;
  const service = {
    ...readyService(serving, running),
    ended: running.exited,
    stop: () => {
      if (stopped === undefined) running.signal('SIGTERM');
      return (stopped ??= running.exited);
    },
  };
  services.add(service);
  return service;
};

export const serviceForTests = (...given: Parameters<typeof startService>): Service =>
  beforeTests(() => startService(...given));

/** Every server in this process ends with 0 and without an error in its log, whatever was done to it. */
beforeRemoval(async () => {
  for (const child of children) child.kill('SIGKILL');
  const codes = await Promise.all(Array.from(services, (service) => service.stop()));
  expect(codes.filter((code) => code !== 0)).toEqual([]);
  for (const service of services) expect(loggedBy(service, '"level":50')).toEqual([]);
});
