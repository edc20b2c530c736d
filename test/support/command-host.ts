import { setPriority } from 'node:os';
import { Readable } from 'node:stream';
import { setTimeout as later } from 'node:timers/promises';
import { main } from '../../src/cli/main';
import { isIdleWithin, listenersSince, useEnvironment } from './hosting';

/**
 * Runs commands for tests, one after another in one process, because starting Node costs far more than most commands.
 * Each command runs as in the program, with its own environment, output and exit code, and must leave nothing behind
 * that would keep its own process alive.
 */
export interface HostedCommand {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The content of stdin; without it stdin is empty. */
  readonly input?: string;
}

const IDLE_MS = 10_000;

const captured = (stream: NodeJS.WriteStream): (() => string) => {
  const chunks: Buffer[] = [];
  stream.write = (chunk: string | Uint8Array, ...more: unknown[]): boolean => {
    chunks.push(Buffer.from(chunk as string));
    const done = more.at(-1);
    if (typeof done === 'function') process.nextTick(done);
    return true;
  };
  return () => Buffer.concat(chunks).toString();
};

const mustBeIdle = async (idle: number): Promise<void> => {
  if (await isIdleWithin(idle, IDLE_MS)) return;
  throw new Error(`The command would not have ended: ${process.getActiveResourcesInfo().join(', ')}`);
};

/** A long command lowers its priority. A process that may not raise it again stays as it is. */
const restorePriority = (): void => {
  try {
    setPriority(0);
  } catch {
    // All commands after such a one have the lower priority.
  }
};

/** The first access to a stream opens it. */
const streams = [process.stdin, process.stdout, process.stderr] as const;

const stdin = (stream: Readable): void =>
  void Object.defineProperty(process, 'stdin', { value: stream, configurable: true });

const run = async ({ args, env, input }: HostedCommand): Promise<void> => {
  useEnvironment(env);
  stdin(input === undefined ? streams[0] : Readable.from([Buffer.from(input)]));
  const [stdout, stderr] = [captured(process.stdout), captured(process.stderr)];
  const forget = [process, ...streams].map(listenersSince);
  const idle = process.getActiveResourcesInfo().length;
  process.exitCode = undefined;
  await main([process.execPath, 'tenant-ledger', ...args]);
  const code = process.exitCode ?? 0;
  await mustBeIdle(idle);
  globalThis.gc?.(); // SQLite closes a connection when the last of its statements is garbage-collected
  await later(0);
  for (const each of forget) each();
  restorePriority();
  process.exitCode = undefined;
  process.send?.({ code, stdout: stdout(), stderr: stderr() });
};

process.on('disconnect', () => process.exit());
process.on('message', (command: HostedCommand) => void run(command));
