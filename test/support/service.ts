import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { freshFolder } from './folders';
import { logOf } from './log-under-test';

/** The program as its users run it: real processes on real files. */
const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');

type Environment = Readonly<Record<string, string>>;

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const running = new Set<ChildProcess>();

/** Another build of the program may be named. */
export const spawnProgram = (args: readonly string[], env: Environment, main = MAIN): ChildProcess => {
  const child = spawn(process.execPath, [main, ...args], {
    env: { PATH: process.env['PATH'] ?? '', ...logOf(env['DATA_DIR'] ?? ''), ...env },
  });
  running.add(child);
  child.once('close', () => running.delete(child));
  return child;
};

/** Runs one command to its end. */
export const command = async (args: readonly string[], env: Environment, main = MAIN): Promise<Finished> => {
  const child = spawnProgram(args, env, main);
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
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
  /** SIGTERM, and waits. Gives the exit code. */
  stop(): Promise<number | null>;
  /** SIGKILL, and waits. */
  kill(): Promise<void>;
}

/** Starts a server on free ports and waits until it is ready. */
export const startService = async (env: Environment = {}, main = MAIN): Promise<Service> => {
  const folder = env['DATA_DIR'] ?? freshFolder();
  const child = spawnProgram(['serve'], { PORT: '0', OPS_PORT: '0', DATA_DIR: folder, ...env }, main);
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
