import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openApp, type App } from '../src/app/app';
import { monotonicMs } from '../src/async/clock';
import { readConfiguration } from '../src/configuration';
import { updateTenant } from '../src/domain/tenant';
import type { NewEvent } from '../src/event-log/event-log';
import { streamNames } from '../src/event-log/streams';

/**
 * What does the first write to a tenant cost after a start, on SQLite and on the stand-in for an event store?
 * `npm run bench -- first-write [EVENTS…]`
 */
const SIZES = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [1_000, 10_000, 100_000];
const ROUNDS = 3;
const BATCH = 500;
const STORE = join(__dirname, '..', 'test', 'support', 'event-store', 'stand-in-process.js');
const [tenantId, applicationId] = [randomUUID(), randomUUID()];
const settings = { fingerprintTokens: false, deduplicateTokens: false };

const event = (type: string, data: NewEvent['data'], more: NewEvent['metadata'] = {}): NewEvent => ({
  id: randomUUID(),
  type,
  data,
  metadata: { version: 1, at: new Date().toISOString(), ...more },
});

const updated = (n: number): NewEvent =>
  event(
    'TenantUpdated',
    { name: `Name ${n}`, settings },
    {
      actor: { type: 'application', id: applicationId },
      idempotency: { key: randomUUID(), scope: 'PUT /tenants/self', hash: 'x'.repeat(64) },
    },
  );

const fill = async ({ log }: App, events: number): Promise<void> => {
  const stream = streamNames().tenant(tenantId);
  const data = { name: 'Bench', ownerId: applicationId, settings, includedMonthlyActiveTokens: 0 };
  let { revision } = await log.append(stream, [event('TenantCreated', data)], 'no_stream', 20_000);
  while (revision + 1 < events) {
    const batch = Array.from({ length: Math.min(BATCH, events - revision - 1) }, (_, n) => updated(n));
    ({ revision } = await log.append(stream, batch, revision, 20_000));
  }
};

const firstWrite = async (open: () => Promise<App>): Promise<number> => {
  const app = await open();
  const began = performance.now();
  await app.ledger.execute({
    tenantId,
    caller: { kind: 'operator', actor: { type: 'user', id: applicationId } },
    decide: updateTenant({ name: 'First', settings: {} }),
    at: new Date().toISOString(),
    deadline: monotonicMs() + 60_000,
  });
  const ms = performance.now() - began;
  await app.close();
  return ms;
};

const median = (times: readonly number[]): string =>
  `${Math.round(times.toSorted((a, b) => a - b)[times.length >> 1] ?? NaN)} ms`;

const measure = async (where: string, events: number, url: string): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));
  const configuration = { ...readConfiguration({ DATA_DIR: folder }), EVENTSTORE_URL: url };
  const open = () => openApp(configuration, (what) => console.error(what));
  const app = await open();
  await fill(app, events);
  await app.close();
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) times.push(await firstWrite(open));
  console.log(`${where}, ${events} events: ${median(times)} (median of ${ROUNDS})`);
  rmSync(folder, { recursive: true, force: true });
};

const main = async (): Promise<void> => {
  for (const events of SIZES) await measure('SQLite', events, '');
  for (const events of SIZES) {
    const store = fork(STORE);
    const [url] = (await once(store, 'message')) as [string];
    await measure('event store', events, url);
    store.disconnect();
  }
};

void main();
