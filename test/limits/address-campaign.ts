import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * `npm run campaign -- limits [ADDRESSES]`: this many clients, each with its own address (and with windows so long that
 * none ends), send one request each to one server. How much memory does it use? The short form is
 * many-addresses.test.ts.
 */
const ADDRESSES = Number(process.argv[2] ?? 250_000);
const MAX_MEGABYTES = 200;
const CONNECTIONS = 8;
const AT_ONCE = 20;
const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');

const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-limits-'));
/** As `npm start` and the container start it. */
const FLAGS = ['--max-semi-space-size=6'];

const server = spawn(process.execPath, [...FLAGS, MAIN, 'serve'], {
  env: {
    PATH: process.env['PATH'] ?? '',
    PORT: '0',
    OPS_PORT: '0',
    DATA_DIR: folder,
    LOG_LEVEL: 'info',
    RATE_LIMITS: 'global=1000/3600/10',
    TRUSTED_PROXIES: '1',
  },
});

const ready = async (): Promise<{ url: string }> => {
  let printed = '';
  for await (const chunk of server.stderr) {
    printed += String(chunk);
    const line = printed.split('\n').find((text) => text.includes('"msg":"ready"') && text.endsWith('}'));
    if (line !== undefined) return JSON.parse(line) as { url: string };
  }
  throw new Error(`The server ended: ${printed}`);
};

const megabytes = (name: 'VmRSS' | 'VmHWM'): number => {
  const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
  return Number(new RegExp(`${name}:\\s+([0-9]+)`).exec(status)?.[1]) / 1_024;
};

/** Half of them IPv4, half IPv6 networks. */
const addressOf = (number: number): string =>
  number % 2 === 0
    ? [20 + (number >>> 24), (number >>> 16) & 255, (number >>> 8) & 255, number & 255].join('.')
    : `2001:db8:${(number >>> 16).toString(16)}:${(number & 0xffff).toString(16)}::1`;

const requestFrom = (number: number): string =>
  `GET /nowhere HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.1, ${addressOf(number)}\r\n\r\n`;

/** One connection sends a request for each of its addresses, many of them in flight at once. */
const askFor = (url: URL, from: number, to: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect(Number(url.port), url.hostname);
    let [sent, answeredCount] = [from, from];
    const send = (): void => {
      const end = Math.min(to, sent + AT_ONCE);
      let batch = '';
      for (; sent < end; sent += 1) batch += requestFrom(sent);
      socket.write(batch);
    };
    socket.setEncoding('latin1');
    socket.on('connect', send);
    socket.on('error', reject);
    socket.on('data', (chunk: string) => {
      // Only status lines are counted. One that is split in two is rare, and the next responses make up for it.
      answeredCount += chunk.split('HTTP/1.1 404').length - 1;
      if (chunk.includes('HTTP/1.1 429')) reject(new Error('An address was blocked.'));
      if (answeredCount >= to) {
        socket.destroy();
        resolve();
      } else if (answeredCount >= sent) send();
    });
  });

const campaign = async (): Promise<boolean> => {
  const { url } = await ready();
  server.stderr.resume();
  const before = megabytes('VmRSS');
  const startedAt = performance.now();
  const share = Math.ceil(ADDRESSES / CONNECTIONS);
  await Promise.all(
    Array.from({ length: CONNECTIONS }, (_, lane) =>
      askFor(new URL(url), lane * share, Math.min(ADDRESSES, (lane + 1) * share)),
    ),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  const [after, peak] = [megabytes('VmRSS'), megabytes('VmHWM')];
  console.log(`${ADDRESSES} addresses in ${seconds.toFixed(1)} s`);
  console.log(
    `memory before ${before.toFixed(0)} MB, after ${after.toFixed(0)} MB, at most ${peak.toFixed(0)} MB`,
  );
  console.log(`grown by ${(after - before).toFixed(0)} MB`);
  return peak - before < MAX_MEGABYTES;
};

const main = async (): Promise<void> => {
  const good = await campaign().finally(() => server.kill('SIGTERM'));
  await once(server, 'close');
  rmSync(folder, { recursive: true, force: true });
  console.log(good ? 'within the bounds' : 'NOT within the bounds');
  process.exitCode = good ? 0 : 1;
};

void main();
