import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { factTypes } from '../src/domain/facts';
import { runToEnd, startServer, type Server } from './processes';

/**
 * How fast does `ingest` run next to a server, until the read models contain every fact, and how far do they lag
 * meanwhile? `npm run bench -- ingest [FACTS]`
 */
const FACTS = Number(process.argv[2] ?? 100_000);
const TENANTS = 10;
const LINES_PER_SYNC = 100;
const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));
const data = join(folder, 'data');

const linesFor = (tenants: readonly string[]): readonly string[] =>
  Array.from({ length: FACTS }, (_, i) =>
    JSON.stringify({
      id: randomUUID(),
      tenant_id: tenants[i % TENANTS],
      type: factTypes[i % factTypes.length],
      data: {
        entityId: `entity-${Math.floor(Math.random() * 10_000)}`,
        occurredAt: new Date(Date.now() - Math.floor(Math.random() * 5_000_000_000)).toISOString(),
        entityType: 'webhook',
        operation: 'send',
      },
    }),
  );

/** The baseline of the disk: appends the same lines to a file, with an fdatasync as often as the log does one. */
const plainAppend = (lines: readonly string[]): number => {
  const began = performance.now();
  const file = openSync(join(folder, 'plain.ndjson'), 'a');
  for (let from = 0; from < lines.length; from += LINES_PER_SYNC) {
    writeSync(file, `${lines.slice(from, from + LINES_PER_SYNC).join('\n')}\n`);
    fdatasyncSync(file);
  }
  closeSync(file);
  return (performance.now() - began) / 1_000;
};

interface Lag {
  readonly seconds: number;
  readonly events: number;
}

interface Ready {
  readonly projections: readonly { readonly lag_seconds: number; readonly lag_events: number }[];
}

const lagNow = async ({ operationsUrl }: Server): Promise<Lag> => {
  const { projections } = (await (await fetch(`${operationsUrl}/readyz`)).json()) as Ready;
  return {
    seconds: Math.max(...projections.map(({ lag_seconds }) => lag_seconds)),
    events: Math.max(...projections.map(({ lag_events }) => lag_events)),
  };
};

/** Polls the lag until the returned function is called, which returns the worst. */
const watchLag = (server: Server) => {
  let isRunning = true;
  let worst: Lag = { seconds: 0, events: 0 };
  let asked = 0;
  const watch = async (): Promise<void> => {
    while (isRunning) {
      const { seconds, events } = await lagNow(server);
      asked += 1;
      worst = { seconds: Math.max(worst.seconds, seconds), events: Math.max(worst.events, events) };
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const watching = watch();
  return async () => {
    isRunning = false;
    await watching;
    return { ...worst, asked };
  };
};

const caughtUp = async (server: Server): Promise<void> => {
  while ((await lagNow(server)).events > 0) await new Promise((resolve) => setTimeout(resolve, 5));
};

const timed = async (file: string, server: Server): Promise<number> => {
  const began = performance.now();
  const main = join(__dirname, '..', 'src', 'cli', 'main.js');
  const flags = process.env['CPU_PROFILE'] === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', 'profile'];
  const child = spawn(process.execPath, [...flags, main, 'ingest', file], {
    env: { ...process.env, DATA_DIR: data },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) throw new Error(`ingest ended with ${code}.`);
  await caughtUp(server);
  return (performance.now() - began) / 1_000;
};

const row = (what: string, seconds: number): void =>
  console.log(
    `${what.padEnd(52)}${seconds.toFixed(2).padStart(8)} s${Math.round(FACTS / seconds)
      .toString()
      .padStart(10)}/s`,
  );

const main = async (): Promise<void> => {
  const server = await startServer({ DATA_DIR: data });
  const tenants: string[] = [];
  for (let i = 0; i < TENANTS; i += 1) {
    const id = randomUUID();
    await runToEnd(['tenant', 'create', '--name', `Tenant ${i}`, '--id', id], { DATA_DIR: data });
    tenants.push(id);
  }
  const lines = linesFor(tenants);
  const file = join(folder, 'facts.ndjson');
  writeFileSync(file, `${lines.join('\n')}\n`);
  console.log(`${FACTS} facts of ${TENANTS} tenants; load average ${loadavg()[0]?.toFixed(2)}`);
  row(`baseline: appended to a file, fdatasync every ${LINES_PER_SYNC} lines`, plainAppend(lines));
  const lag = watchLag(server);
  const seconds = await timed(file, server);
  const worst = await lag();
  row('ingest beside a server, until all is shown', seconds);
  console.log(
    `largest lag of the read models: ${worst.seconds.toFixed(2)} s, ${worst.events} events (${worst.asked} looks)`,
  );
  console.log(`load average ${loadavg()[0]?.toFixed(2)}`);
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
};

void main();
