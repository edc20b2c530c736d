import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openApp, type App } from '../src/app/app';
import { monotonicMs } from '../src/async/clock';
import { readConfiguration } from '../src/configuration';
import { createTenant, updateTenant } from '../src/domain/tenant';
import { streamNames } from '../src/event-log/streams';

/**
 * What does a write to a tenant cost when its stream has 10, 1,000, … events, with its fold in memory, and as the first
 * write after a restart? `npm run bench -- write-cost [EVENTS]`
 */
const MAX_EVENTS = Number(process.argv[2] ?? 1_000_000);
const WRITES = 300;
const BATCH = 500;
const operator = randomUUID();
const tenantId = randomUUID();
const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));
const configuration = readConfiguration({ DATA_DIR: folder });

const open = (): Promise<App> => openApp(configuration, (what) => console.error(what));

const write = (app: App, withinMs = 2_000) =>
  app.ledger.execute({
    tenantId,
    caller: { kind: 'operator', actor: { type: 'user', id: operator } },
    decide: updateTenant({ name: `Name ${Math.random()}`, settings: {} }),
    at: new Date().toISOString(),
    deadline: monotonicMs() + withinMs,
  });

const create = async (app: App): Promise<void> => {
  const decide = createTenant({ name: 'Bench', ownerId: operator, includedMonthlyActiveTokens: 0 });
  const caller = { kind: 'operator', actor: { type: 'user', id: operator } } as const;
  await app.ledger.execute({
    tenantId,
    caller,
    decide,
    at: new Date().toISOString(),
    deadline: monotonicMs() + 5_000,
  });
};

/** Appends directly to the log. Each event has an idempotency key, to make the fold as large as possible. */
const fill = async (app: App, from: number, to: number): Promise<void> => {
  const stream = streamNames().tenant(tenantId);
  const settings = { fingerprintTokens: false, deduplicateTokens: false };
  const at = new Date().toISOString();
  for (let revision = from; revision <= to; revision += BATCH) {
    const events = Array.from({ length: Math.min(BATCH, to - revision + 1) }, (_, i) => ({
      id: randomUUID(),
      type: 'TenantUpdated',
      data: { name: `Name ${revision + i}`, settings },
      metadata: {
        version: 1,
        at,
        actor: { type: 'application', id: operator },
        idempotency: { key: `key-${revision + i}`, scope: 'PUT /tenants/self', hash: 'x'.repeat(64) },
      },
    }));
    await app.log.append(stream, events, revision - 1, 10_000);
  }
};

const milliseconds = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now();
  await work();
  return performance.now() - began;
};

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? NaN;

const main = async (): Promise<void> => {
  let app = await open();
  await create(app);
  let last = 0;
  console.log('events in stream | first write after a restart | median of the next writes');
  for (let target = 10; target <= MAX_EVENTS; target *= target < 1_000 ? 100 : 10) {
    await fill(app, last + 1, target);
    await write(app, 120_000);
    await app.close();
    app = await open();
    const first = await milliseconds(() => write(app));
    const warm: number[] = [];
    for (let i = 0; i < WRITES; i++) warm.push(await milliseconds(() => write(app)));
    last = target + 2 + WRITES;
    console.log(
      `${String(target).padStart(16)} | ${first.toFixed(1).padStart(24)} ms | ${median(warm).toFixed(2)} ms`,
    );
  }
  await app.close();
  rmSync(folder, { recursive: true, force: true });
};

void main();
