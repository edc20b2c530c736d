import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pause } from '../src/async/clock';
import type { NewEvent } from '../src/event-log/event-log';
import { sqliteEventLog } from '../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../src/event-log/streams';
import { digestOf, makeKey } from '../src/ledger/api-key';
import { caughtUp, MAIN, startServer, type Server } from './processes';

/**
 * What do open event streams cost? The effect of 200 Server-Sent Events streams on `PUT /tenants/self`; the delay from an
 * append to `audit --follow` under load; and 50 clients that never read. `npm run bench -- audit-streams`
 */
const STALLED = 50;
const FACTS = 40_000;
const STREAMS = 200;
const PER_TENANT = 20;
const ROUNDS = 5;
const PUTS = 100;
const QUIET_MS = 5_000;
const WRITERS = 8;
const MARKS = 100;
/** The tenants of the clients that never read, with more events than the socket buffers hold. */
const HEAVY = Math.ceil(STALLED / PER_TENANT);
const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));

interface Owner {
  readonly tenantId: string;
  readonly key: string;
}

const event = (type: string, data: NewEvent['data']): NewEvent => ({
  id: randomUUID(),
  type,
  data,
  metadata: { version: 1, at: new Date().toISOString() },
});

const fill = async (tenants: number): Promise<readonly Owner[]> => {
  const streams = streamNames();
  const log = await sqliteEventLog(folder, streams);
  const settings = { fingerprintTokens: false, deduplicateTokens: false };
  const permissions = ['tenant:read', 'tenant:update', 'log:read'];
  const owners: Owner[] = [];
  for (let at = 0; at < tenants; at += 1) {
    const [tenantId, applicationId] = [randomUUID(), randomUUID()];
    const key = makeKey(tenantId);
    const created = { name: 'Bench', ownerId: randomUUID(), settings, includedMonthlyActiveTokens: 0 };
    const application = { applicationId, name: 'Bench', applicationType: 'management', permissions };
    const added = { keyId: randomUUID(), applicationId, digest: digestOf(key) };
    const events = [
      event('TenantCreated', created),
      event('ApplicationCreated', application),
      event('KeyAdded', added),
    ];
    await log.append(streams.tenant(tenantId), events, 'no_stream', 20_000);
    for (let from = 0; at < HEAVY && from < FACTS; from += 100) {
      const facts = Array.from({ length: 100 }, (_, n) =>
        event('TokenCreated', { entityId: `tok_${from + n}` }),
      );
      await log.append(streams.activity(tenantId), facts, from === 0 ? 'no_stream' : from - 1, 20_000);
    }
    owners.push({ tenantId, key });
  }
  await log.close();
  return owners;
};

const memoryOf = ({ pid }: Server): number =>
  Number(/VmRSS:\s+([0-9]+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;
const megabytes = (value: number): string => `${Math.round(value)} MB`;
const print = (line: string): void => void process.stdout.write(`${line}\n`);

const openStream = (server: Server, key: string, path: string, accept: string): Socket => {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nSVC-API-KEY: ${key}\r\nAccept: ${accept}\r\n\r\n`);
  return socket;
};

/** The open connections of a server, and the bytes waiting in their buffers, according to the kernel. */
const connectionsOf = (server: Server): { readonly open: number; readonly waiting: string } => {
  const port = Number(new URL(server.url).port).toString(16).toUpperCase().padStart(4, '0');
  const ours = new RegExp(`^ *[0-9]+: 0100007F:${port} [0-9A-F:]+ 01 ([0-9A-F:]+) `);
  const queues = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .flatMap((line) => ours.exec(line)?.[1] ?? []);
  return { open: queues.length, waiting: queues.join(' ') };
};

/** Waits until nothing more is sent. Returns the time at which sending stopped. */
const stalledSince = async (server: Server): Promise<number> => {
  let [waiting, since] = ['', performance.now()];
  while (performance.now() - since < QUIET_MS) {
    const now = connectionsOf(server).waiting;
    if (now !== waiting) [waiting, since] = [now, performance.now()];
    await pause(50);
  }
  return since;
};

const stalledReaders = async (server: Server, owners: readonly Owner[]): Promise<void> => {
  const before = memoryOf(server);
  const others = connectionsOf(server).open;
  const sockets = Array.from({ length: STALLED }, (_, at) =>
    openStream(
      server,
      owners[Math.floor(at / PER_TENANT)]?.key ?? '',
      '/events?follow=true',
      'application/x-ndjson',
    ).pause(),
  );
  const began = await stalledSince(server);
  const open = connectionsOf(server).open - others;
  const during = memoryOf(server);
  while (connectionsOf(server).open > 0) await pause(50);
  const cutAfter = (performance.now() - began) / 1_000;
  const after = memoryOf(server);
  print(
    `${STALLED} readers that never read: ${open} open; memory ${megabytes(before)} before, ${megabytes(during)} with them, ${megabytes(after)} after; the last was cut ${cutAfter.toFixed(1)} s after the last one had stalled`,
  );
  let text = '';
  const [reader] = sockets;
  reader?.on('data', (chunk: Buffer) => (text += chunk.toString())).resume();
  while (reader?.closed === false) await pause(10);
  for (const socket of sockets) socket.destroy();
  const events = text.match(/^\{"id".*\}$/gm) ?? [];
  const { position } = JSON.parse(events.at(-1) ?? '{}') as { position?: string };
  const headers = { 'SVC-API-KEY': owners[0]?.key ?? '' };
  const rest = await (await fetch(`${server.url}/events?after=${position}`, { headers })).text();
  const resumed = rest.match(/^\{"id"/gm)?.length ?? 0;
  print(
    `one of them had ${events.length} whole events, and ${resumed} when it resumed: ${events.length + resumed} of ${FACTS + 3}`,
  );
};

const put = async (server: Server, key: string): Promise<number> => {
  const began = performance.now();
  const response = await fetch(`${server.url}/tenants/self`, {
    method: 'PUT',
    headers: { 'SVC-API-KEY': key, 'content-type': 'application/json' },
    body: '{"name":"Bench"}',
  });
  await response.arrayBuffer();
  if (response.status !== 200) throw new Error(`PUT was answered with ${response.status}`);
  return performance.now() - began;
};

const at = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * part)] ?? NaN;

const putMany = async (server: Server, key: string, times: number[]): Promise<void> => {
  for (let n = 0; n < PUTS; n += 1) times.push(await put(server, key));
};

const openStreams = async (server: Server, owners: readonly Owner[]): Promise<readonly Socket[]> => {
  let answered = 0;
  const sockets = Array.from({ length: STREAMS }, (_, n) => {
    const { key } = owners[Math.floor(n / PER_TENANT)] ?? { key: '' };
    const socket = openStream(server, key, '/events?follow=true', 'text/event-stream');
    socket.once('data', () => (answered += 1));
    return socket.resume();
  });
  while (answered < STREAMS) await pause(10);
  return sockets;
};

const sseStreams = async (server: Server, owners: readonly Owner[], other: Owner): Promise<void> => {
  const [without, quiet, followed]: number[][] = [[], [], []];
  for (let n = 0; n < 3; n += 1) await putMany(server, other.key, []);
  const before = memoryOf(server);
  let during = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    await putMany(server, other.key, without ?? []);
    const sockets = await openStreams(server, owners);
    await pause(1_000);
    during = Math.max(during, memoryOf(server));
    await putMany(server, other.key, quiet ?? []);
    await putMany(server, owners[0]?.key ?? '', followed ?? []);
    during = Math.max(during, memoryOf(server));
    for (const socket of sockets) socket.destroy();
    while (connectionsOf(server).open > 2) await pause(10);
  }
  print(
    `${STREAMS} streams of Server-Sent Events: memory ${megabytes(before)} before, ${megabytes(during)} at most with them`,
  );
  const line = (name: string, times: readonly number[] = []): void =>
    print(
      `  PUT ${name}: median ${at(times, 0.5).toFixed(2)} ms, 95 % within ${at(times, 0.95).toFixed(2)} ms, ${(at(times, 0.5) / at(without ?? [], 0.5)).toFixed(2)} of the median without`,
    );
  line('without them', without);
  line('to a tenant that nobody follows', quiet);
  line(`to a tenant with ${PER_TENANT} of them`, followed);
};

const followUnderLoad = async (server: Server, owners: readonly Owner[]): Promise<void> => {
  const { tenantId, key } = owners[0] ?? { tenantId: '', key: '' };
  const child = spawn(process.execPath, [MAIN, 'audit', '--follow', '--type', 'TenantUpdated'], {
    env: { PATH: process.env['PATH'], DATA_DIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const seen = new Map<string, number>();
  let rest = '';
  child.stdout.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    for (const text of lines) {
      const line = JSON.parse(text) as { tenant_id: string; trace_id?: string };
      if (line.tenant_id === tenantId && line.trace_id !== undefined)
        seen.set(line.trace_id, performance.now());
    }
  });
  let isLoaded = true;
  let writes = 0;
  const load = owners.slice(1, 1 + WRITERS).map(async (owner) => {
    for (; isLoaded; writes += 1) await put(server, owner.key);
  });
  await pause(2_000);
  const loadBegan = [performance.now(), writes] as const;
  const delays: number[] = [];
  for (let n = 0; n < MARKS; n += 1) {
    const traceId = `mark-${n}`;
    const headers = { 'SVC-API-KEY': key, 'content-type': 'application/json', 'SVC-TRACE-ID': traceId };
    const began = performance.now();
    await fetch(`${server.url}/tenants/self`, { method: 'PUT', headers, body: '{"name":"Mark"}' });
    while (!seen.has(traceId)) await pause(1);
    delays.push((seen.get(traceId) ?? NaN) - began);
  }
  const perSecond = (writes - loadBegan[1]) / ((performance.now() - loadBegan[0]) / 1_000);
  isLoaded = false;
  await Promise.all(load);
  child.kill('SIGINT');
  print(
    `audit --follow beside ${Math.round(perSecond)} writes/s, from sending a PUT to its line: median ${Math.round(at(delays, 0.5))} ms, most ${Math.round(at(delays, 1))} ms`,
  );
};

const main = async (): Promise<void> => {
  const owners = await fill(HEAVY + STREAMS / PER_TENANT + 1);
  const server = await startServer({ DATA_DIR: folder, RATE_LIMITS: 'off', DEMO: 'false' });
  try {
    await caughtUp(server);
    const light = owners.slice(HEAVY);
    await sseStreams(server, light, light.at(-1) as Owner);
    await followUnderLoad(server, light);
    await stalledReaders(server, owners.slice(0, HEAVY));
  } finally {
    await server.stop();
  }
};

void main()
  .finally(() => rmSync(folder, { recursive: true, force: true }))
  .catch((error: unknown) => {
    console.error(error);
    process.exitCode = 1;
  });
