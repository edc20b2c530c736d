import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EventLog } from '../src/event-log/event-log';
import { sqliteEventLog } from '../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../src/event-log/streams';
import { openForReading } from '../src/sqlite/database';
import { appendFacts } from './facts';
import { startServer } from './processes';

/**
 * How long does a change to a tenant take to show in `applications` and in `logs`, while another process appends a burst
 * of other tenants' facts? `npm run bench -- applications-lag [FACTS] [MAIN]`; MAIN is another build of the program.
 */
const FACTS = Number(process.argv[2] ?? 150_000);
const MAIN = process.argv[3];
const INTERVAL_MS = 100;
const POLL_MS = 2;
const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));
const streams = streamNames();

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The position of a read model, read from its file. */
const positionOf = (projection: string): (() => string) => {
  const models = join(folder, 'read-models');
  const file = readdirSync(models).find((name) => name.startsWith(`${projection}_v`) && name.endsWith('.db'));
  const db = openForReading(join(models, file ?? ''));
  return () =>
    (db.prepare('SELECT position FROM control').get() as { position: string | null }).position ?? '';
};

const tenantEvent = (type: 'TenantCreated' | 'TenantUpdated') => ({
  id: randomUUID(),
  type,
  data: {
    name: 'A tenant',
    settings: { fingerprintTokens: false, deduplicateTokens: false },
    ...(type === 'TenantCreated' ? { ownerId: randomUUID(), includedMonthlyActiveTokens: 0 } : {}),
  },
  metadata: { version: 1 },
});

/** Changes a tenant repeatedly until stopped. Returns how long each change took to show, sorted. */
const probe = async (
  log: EventLog,
  projection: string,
  isOver: () => boolean,
): Promise<readonly number[]> => {
  const stream = streams.tenant(randomUUID());
  const position = positionOf(projection);
  await log.append(stream, [tenantEvent('TenantCreated')], 'no_stream', 60_000);
  const lags: number[] = [];
  for (let revision = 0; !isOver(); revision += 1) {
    const appended = await log.append(stream, [tenantEvent('TenantUpdated')], revision, 60_000);
    const began = performance.now();
    while (position() < appended.position) await wait(POLL_MS);
    lags.push(performance.now() - began);
    await wait(INTERVAL_MS);
  }
  return lags.toSorted((a, b) => a - b);
};

const main = async (): Promise<void> => {
  const server = await startServer({ DATA_DIR: folder, DEMO: 'false' }, MAIN);
  const log = await sqliteEventLog(folder, streams);
  let isOver = false;
  const probing = Promise.all(
    ['applications', 'logs'].map((projection) => probe(log, projection, () => isOver)),
  );
  const began = performance.now();
  await appendFacts({ log, streams }, FACTS);
  const appended = performance.now() - began;
  const logs = positionOf('logs');
  const head = (await log.head())?.position ?? '';
  while (logs() < head) await wait(POLL_MS);
  const shown = performance.now() - began;
  isOver = true;
  const [applications = [], others = []] = await probing;
  console.log(
    `${FACTS} facts appended in ${(appended / 1_000).toFixed(1)} s, shown in ${(shown / 1_000).toFixed(1)} s`,
  );
  for (const [name, lags] of [
    ['applications', applications],
    ['logs', others],
  ] as const)
    console.log(
      `${name.padEnd(13)} ${lags.length} changes shown after: median ${Math.round(lags[lags.length >> 1] ?? 0)} ms, longest ${Math.round(lags.at(-1) ?? 0)} ms`,
    );
  await log.close();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
};

void main();
