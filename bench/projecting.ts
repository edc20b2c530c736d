import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openApp, type App } from '../src/app';
import { readConfiguration } from '../src/configuration';
import { factTypes } from '../src/domain/facts';
import { projectingThread } from '../src/projecting-thread';

/**
 * How fast are log rows projected live, with all indexes, and all projections with them?
 * `npm run bench:projecting [EVENTS]`
 */
const EVENTS = Number(process.argv[2] ?? 200_000);
const BATCH = 100;
const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));

const facts = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    id: randomUUID(),
    type: factTypes[i % factTypes.length] as string,
    data: {
      entityId: `entity-${Math.floor(Math.random() * 10_000)}`,
      entityType: 'webhook',
      operation: 'sent',
    },
    metadata: { version: 1 },
  }));

const fill = async ({ log, streams }: App): Promise<void> => {
  const tenants = Array.from({ length: 10 }, () => randomUUID());
  const ends = new Map<string, number>();
  for (let done = 0; done < EVENTS; done += BATCH * tenants.length)
    await Promise.all(
      tenants.map(async (tenantId) => {
        const stream = streams.activity(tenantId);
        const { revision } = await log.append(stream, facts(BATCH), ends.get(stream) ?? 'no_stream', 60_000);
        ends.set(stream, revision);
      }),
    );
};

const seconds = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1_000;
};

const main = async (): Promise<void> => {
  const configuration = readConfiguration({ DATA_DIR: folder });
  const onTrouble = (what: string, error: unknown): void => console.error(what, error);
  const app = await openApp(configuration, onTrouble, projectingThread(configuration, onTrouble));
  console.log(`append: ${Math.round(EVENTS / (await seconds(() => fill(app))))} events/s`);
  let read = 0;
  const reading = await seconds(async () => {
    for await (const batch of app.log.readAll()) read += batch.length;
  });
  console.log(`read: ${Math.round(read / reading)} events/s`);
  const head = await app.log.head();
  const projecting = await seconds(async () => {
    await app.projecting.start();
    await app.projecting.reached(head?.position ?? '', 600_000);
  });
  console.log(`projected into all read models, all indexes: ${Math.round(EVENTS / projecting)} events/s`);
  await app.close();
  rmSync(folder, { recursive: true, force: true });
};

void main();
