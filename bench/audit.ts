import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqliteEventLog } from '../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../src/event-log/streams';

/** How fast are raw events exported, checked and found? `npm run bench -- audit [EVENTS]` */
const EVENTS = Number(process.argv[2] ?? 200_000);
const TENANTS = 1_000;
const BATCH = 100;
const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));
const MAIN = join(__dirname, '..', 'src', 'cli', 'main.js');

const fill = async (): Promise<string> => {
  const streams = streamNames();
  const log = await sqliteEventLog(folder, streams);
  const tenants = Array.from({ length: TENANTS }, () => randomUUID());
  const each = Math.ceil(EVENTS / TENANTS);
  const appendAll = async (tenantId: string): Promise<void> => {
    for (let from = 0; from < each; from += BATCH) {
      const events = Array.from({ length: Math.min(BATCH, each - from) }, (_, at) => ({
        id: randomUUID(),
        type: 'TokenCreated',
        data: { entityId: `tok_${from + at}`, tokenType: 'card' },
        metadata: { version: 1, at: new Date().toISOString(), traceId: `trace-${from + at}` },
      }));
      await log.append(streams.activity(tenantId), events, from === 0 ? 'no_stream' : from - 1, 60_000);
    }
  };
  for (let from = 0; from < TENANTS; from += 50)
    await Promise.all(tenants.slice(from, from + 50).map(appendAll));
  await log.close();
  return tenants[0] ?? '';
};

interface Timed {
  readonly seconds: number;
  /** Milliseconds until the first bytes on stdout. */
  readonly first: number;
}

const timed = async (args: readonly string[], stdout: 'pipe' | number = 'pipe'): Promise<Timed> => {
  const began = performance.now();
  let first = 0;
  const child = spawn(process.execPath, [MAIN, 'audit', ...args], {
    env: { PATH: process.env['PATH'], DATA_DIR: folder },
    stdio: ['ignore', stdout, 'ignore'],
  });
  child.stdout?.on('data', () => (first ||= performance.now() - began));
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) throw new Error(`audit ${args.join(' ')} ended with ${code}`);
  return { seconds: (performance.now() - began) / 1_000, first };
};

const ROUNDS = 5;

/** The median of several runs, because startup times vary more than the work itself. */
const median = async (value: (run: Timed) => number, ...args: readonly string[]): Promise<number> => {
  const values: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) values.push(value(await timed(args)));
  return values.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? NaN;
};

const main = async (): Promise<void> => {
  const tenant = await fill();
  const file = join(folder, 'export.ndjson');
  // Loads the same modules, but reads nothing.
  const start = await median(({ first }) => first, '--help');
  const all = await timed([], openSync(file, 'w'));
  const checked = await timed(['check', file]);
  const firstLine = await median(({ first }) => first, '--limit', '1');
  const oneTenant = await median(({ seconds }) => seconds * 1_000, '--tenant', tenant);
  const rate = ({ seconds }: Timed): string => `${Math.round(EVENTS / seconds)} events/s`;
  const lines = [
    `${EVENTS} events of ${TENANTS} tenants, each figure with the start of the program`,
    `the start alone, --help:  ${Math.round(start)} ms`,
    `export of all to a file:  ${rate(all)}`,
    `check of that file:       ${rate(checked)}`,
    `first line:               ${Math.round(firstLine)} ms`,
    `one tenant of ${TENANTS}:      ${Math.round(oneTenant)} ms`,
    `load average: ${loadavg()
      .map((load) => load.toFixed(1))
      .join(', ')}`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
};

void main().finally(() => rmSync(folder, { recursive: true, force: true }));
