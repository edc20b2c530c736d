import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const MAIN = join(__dirname, '..', 'src', 'cli', 'main.js');

type Environment = Readonly<Record<string, string>>;

const start = (args: readonly string[], env: Environment, main = MAIN): ChildProcess =>
  spawn(process.execPath, [main, ...args], { env: { PATH: process.env['PATH'] ?? '', ...env } });

export const runToEnd = async (args: readonly string[], env: Environment): Promise<string> => {
  const child = start(args, env);
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr?.pipe(process.stderr);
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}.`);
  return output;
};

export interface Server {
  readonly pid: number;
  readonly url: string;
  readonly operationsUrl: string;
  stop(): Promise<void>;
}

/** Starts a server on free ports, possibly of another build, and waits until it logs that it is ready. */
export const startServer = async (env: Environment, main = MAIN): Promise<Server> => {
  const child = start(['serve'], { PORT: '0', OPS_PORT: '0', ...env }, main);
  let stderr = '';
  const ready = new Promise<{ url: string; operations: string }>((resolve, reject) => {
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
      const line = stderr.split('\n').find((text) => text.includes('"msg":"ready"') && text.endsWith('}'));
      if (line !== undefined) resolve(JSON.parse(line) as { url: string; operations: string });
    });
    child.once('close', (code) => reject(new Error(`The server ended with ${code}: ${stderr}`)));
  });
  const { url, operations } = await ready;
  return {
    pid: child.pid ?? 0,
    url,
    operationsUrl: operations,
    stop: async () => {
      child.kill('SIGTERM');
      await once(child, 'close');
    },
  };
};
