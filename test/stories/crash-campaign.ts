import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crashCampaign, type Start } from './crash';

/** `npm run campaign -- crash [KILLS [CLIENTS [SEED]]]`: the long form of crash.test.ts; prints a table at the end. */
const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');

let victim: ChildProcess | undefined;
process.once('exit', () => victim?.kill('SIGKILL'));

const start: Start = async (env) => {
  const child = spawn(process.execPath, [MAIN, 'serve'], {
    env: { PATH: process.env['PATH'] ?? '', RATE_LIMITS: 'off', DEMO: 'true', ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = once(child, 'close');
  victim = child;
  let stdout = '';
  await new Promise<void>((resolve, reject) => {
    ended.then(() => reject(new Error('The server ended by itself.')), reject);
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString();
      if (/serves http.*\n\n$/s.test(stdout)) resolve();
    });
  });
  return {
    key: /key_[0-9A-Za-z]+/.exec(stdout)?.[0] ?? '',
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
};

const campaign = async (kills = 20, clients = 64, seed?: number): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-crash-'));
  try {
    const outcome = await crashCampaign(
      { kills, clients, seconds: 600, ...(seed === undefined ? {} : { seed }) },
      folder,
      start,
    );
    const same = JSON.stringify(outcome.live) === JSON.stringify(outcome.rebuilt);
    const times = outcome.readyAfterMs.toSorted((a, b) => a - b);
    console.table({
      seed: outcome.seed,
      kills,
      clients,
      'requests sent': outcome.requests,
      acknowledged: outcome.acknowledged,
      'not answered': outcome.unanswered,
      'not answered but written': outcome.writtenUnanswered,
      'acknowledged and lost': outcome.lost.length,
      'written twice': outcome.doubled.length,
      'not exactly once after repeating': outcome.unsettled.length,
      'ready after a start, median ms': times[Math.floor(times.length / 2)],
      'ready after a start, longest ms': times.at(-1),
      'documents in the read models': outcome.live.length,
      'equal to a fresh rebuild': same,
    });
    const wrong = outcome.lost.length + outcome.doubled.length + outcome.unsettled.length;
    if (wrong > 0 || !same || (times.at(-1) ?? 0) > 5_000) process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const [kills, clients, seed] = process.argv.slice(2).map(Number);
void campaign(kills, clients, seed);
