import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openApp } from '../src/app/app';
import { readConfiguration } from '../src/configuration';
import { writingThread } from '../src/app/writing-thread';
import { appendFacts, seconds } from './facts';

/**
 * How fast are events appended, read, and projected live into all read models, with all indexes?
 * `npm run bench:projecting [EVENTS]`
 */
const EVENTS = Number(process.argv[2] ?? 200_000);
const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));

const main = async (): Promise<void> => {
  const configuration = readConfiguration({ DATA_DIR: folder });
  const onError = (what: string, error: unknown): void => console.error(what, error);
  const app = await openApp(configuration, onError, { writing: writingThread(configuration, { onError }) });
  console.log(`append: ${Math.round(EVENTS / (await seconds(() => appendFacts(app, EVENTS))))} events/s`);
  let read = 0;
  const reading = await seconds(async () => {
    for await (const batch of app.log.readAll()) read += batch.length;
  });
  console.log(`read: ${Math.round(read / reading)} events/s`);
  const head = await app.log.head();
  const before = process.cpuUsage();
  const projecting = await seconds(async () => {
    await app.projecting.start();
    await app.projecting.reached(head?.position ?? '', 600_000);
  });
  const { user, system } = process.cpuUsage(before);
  console.log(
    `projected into all read models, all indexes: ${Math.round(EVENTS / projecting)} events/s, ${((user + system) / EVENTS).toFixed(1)} µs of CPU each`,
  );
  await app.close();
  rmSync(folder, { recursive: true, force: true });
};

void main();
