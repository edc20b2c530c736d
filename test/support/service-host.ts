import { setTimeout as later } from 'node:timers/promises';
import { main } from '../../src/cli/main';
import { END, isIdleWithin, listenersSince, useEnvironment, type HostedService } from './hosting';

/*
 * Runs servers for tests, one after another in one process, because loading the program is more than half of a start. Each
 * runs as `tenant-ledger serve` does, with its own environment and signals, until it exits. This process ends with a
 * server that fails, or that leaves something open.
 */
const IDLE_MS = 2_000;

const exit = process.exit.bind(process);

/** The first look at a stream opens it. */
const streams = [process.stdin, process.stdout, process.stderr] as const;

const run = async ({ env }: HostedService): Promise<void> => {
  useEnvironment(env);
  const forget = [process, ...streams].map(listenersSince);
  const idle = process.getActiveResourcesInfo().length;
  const exited = new Promise<number>((resolve) => {
    process.exit = ((code: number) => resolve(code)) as typeof process.exit;
  });
  process.exitCode = undefined;
  await main([process.execPath, 'tenant-ledger', 'serve']);
  const code = process.exitCode ?? (await exited);
  process.exit = exit;
  if (code !== 0) exit(code);
  process.emit('exit', 0);
  for (const each of forget) each();
  if (!(await isIdleWithin(idle, IDLE_MS))) exit(0);
  globalThis.gc?.(); // SQLite closes a connection when the last of its statements is garbage-collected
  await later(0);
  for (const stream of [process.stdout, process.stderr]) stream.write(END);
};

process.on('disconnect', () => exit());
process.on('message', (service: HostedService) => void run(service));
