import { DatabaseSync } from '@photostructure/sqlite';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pause } from '../../src/async/clock';
import type { EventLog } from '../../src/event-log/event-log';
import { eventStoreDbEventLog } from '../../src/event-log/eventstoredb/eventstoredb-event-log';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { fillBusyLog } from '../support/busy-log';
import { startStandIn } from '../support/event-store/stand-in';

/**
 * `npm run campaign -- copy [EVENTS [KILLS]]`: from a data folder to an event store and back into another folder, with the
 * real command, which is killed with SIGKILL this many times in each direction. The event store is the stand-in, or the
 * server that EVENTSTORE_URL names.
 */
const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');

interface Report {
  readonly events: number;
  readonly copied: number;
  readonly source_digest: string;
  readonly target_digest: string;
  readonly seconds: number;
}

const start = (args: readonly string[]) => {
  const child = spawn(process.execPath, [MAIN, 'log', 'copy', '--json', ...args], {
    env: { PATH: process.env['PATH'] ?? '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let stdout = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return { child, ended, stdout: () => stdout };
};

/** In MB, if the system reports it. */
const peakOf = (pid: number | undefined): number => {
  try {
    return Number(/VmHWM:\s+([0-9]+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;
  } catch {
    return 0;
  }
};

type Count = () => Promise<number>;

/** Roughly how many events a log holds; 0 while it does not exist. */
const countOf =
  (log: () => Promise<EventLog>): Count =>
  async () => {
    const opened = await log();
    const head = await opened.head();
    return head === undefined ? 0 : opened.distance(undefined, head.position);
  };

/** Starts, is killed when the next share is copied, starts again …, and finally runs to its end. */
const copyWithKills = async (args: readonly string[], shares: readonly number[], count: Count) => {
  const found: number[] = [];
  for (const share of shares) {
    const { child, ended } = start(args);
    let running = true;
    void ended.then(() => (running = false));
    while (running && (await count()) < share) await pause(100);
    child.kill('SIGKILL');
    if ((await ended) !== null) throw new Error('It was done before it could be killed: take more events.');
    found.push(await count());
  }
  const { child, ended, stdout } = start(args);
  let peak = 0;
  const watch = setInterval(() => (peak = Math.max(peak, peakOf(child.pid))), 200);
  const code = await ended;
  clearInterval(watch);
  if (code !== 0) throw new Error(`The copy ended with ${code}.`);
  return { ...(JSON.parse(stdout()) as Report), peak: Math.round(peak), found: found.join(', ') };
};

const rowsIn = (folder: string): string => {
  const db = new DatabaseSync(join(folder, 'events.db'));
  try {
    return JSON.stringify(db.prepare('SELECT * FROM events ORDER BY position').all());
  } finally {
    db.close();
  }
};

const campaign = async (events = 100_000, kills = 3): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-copy-'));
  const [first, last] = [join(folder, 'first'), join(folder, 'last')];
  const standIn = process.env['EVENTSTORE_URL'] === undefined ? await startStandIn() : undefined;
  const url = standIn?.url ?? process.env['EVENTSTORE_URL'] ?? '';
  const prefix = `copy-${randomUUID()}.`;
  const shares = Array.from({ length: kills }, (_, at) => Math.floor((events * (at + 1)) / (kills + 1)));
  const streams = streamNames();
  const opened: EventLog[] = [];
  const opening = (log: Promise<EventLog>): (() => Promise<EventLog>) => {
    void log.then((ledgerLog) => opened.push(ledgerLog));
    return () => log;
  };
  try {
    const source = await sqliteEventLog(first, streams);
    await fillBusyLog({ log: source, streams }, events, 500);
    await source.close();
    const around = { waitMs: 10_000, onError: () => undefined };
    const between = opening(eventStoreDbEventLog(url, streamNames(prefix), around));
    const target = opening(sqliteEventLog(last, streams));
    const there = await copyWithKills(
      ['--from', first, '--to', url, '--to-prefix', prefix],
      shares,
      countOf(between),
    );
    const back = await copyWithKills(
      ['--from', url, '--from-prefix', prefix, '--to', last],
      shares,
      countOf(target),
    );
    const digests = [there.source_digest, there.target_digest, back.source_digest, back.target_digest];
    const same = rowsIn(first) === rowsIn(last);
    console.table({
      'event store': standIn === undefined ? 'the named server' : 'the stand-in',
      events,
      'there: found after each kill': there.found,
      'there: copied by the last run': there.copied,
      'there: seconds of the last run': there.seconds,
      'there: peak MB': there.peak,
      'back: found after each kill': back.found,
      'back: copied by the last run': back.copied,
      'back: seconds of the last run': back.seconds,
      'back: peak MB': back.peak,
      digest: digests[0],
      'digests equal': new Set(digests).size === 1,
      'rows equal': same,
    });
    if (new Set(digests).size !== 1 || !same || there.events !== events) process.exitCode = 1;
  } finally {
    for (const log of opened) await log.close();
    await standIn?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
};

const [events, kills] = process.argv.slice(2).map(Number);
void campaign(events, kills);
