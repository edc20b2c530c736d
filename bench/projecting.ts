import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openApp } from '../src/app/app';
import { buildMissing } from '../src/app/first-builds';
import { readConfiguration } from '../src/configuration';
import { writingThread } from '../src/app/writing-thread';
import { appendFacts, seconds } from './facts';

/**
 * How fast are events appended, read, and projected into all read models, with all indexes: live, and by a start that
 * finds none? `npm run bench -- projecting [EVENTS]`
 */
const EVENTS = Number(process.argv[2] ?? 200_000);
const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));

const configuration = readConfiguration({ DATA_DIR: folder });
const onError = (what: string, error: unknown): void => console.error(what, error);

const report = async (what: string, work: () => Promise<unknown>): Promise<void> => {
  const before = process.cpuUsage();
  const rate = Math.round(EVENTS / (await seconds(work)));
  const { user, system } = process.cpuUsage(before);
  console.log(`${what}: ${rate} events/s, ${((user + system) / EVENTS).toFixed(1)} µs of CPU each`);
};

const projectLive = async (): Promise<void> => {
  const app = await openApp(configuration, onError, { writing: writingThread(configuration, { onError }) });
  console.log(`append: ${Math.round(EVENTS / (await seconds(() => appendFacts(app, EVENTS))))} events/s`);
  let read = 0;
  const reading = await seconds(async () => {
    for await (const batch of app.log.readAll()) read += batch.length;
  });
  console.log(`read: ${Math.round(read / reading)} events/s`);
  const head = await app.log.head();
  await report('projected live', async () => {
    await app.projecting.start();
    await app.projecting.reached(head?.position ?? '', 600_000);
  });
  await app.close();
};

const buildFirst = async (): Promise<void> => {
  rmSync(join(folder, 'read-models'), { recursive: true });
  const app = await openApp(configuration, onError);
  const { signal: abort } = new AbortController();
  await report('built by a start', () =>
    buildMissing(app, configuration, { onError, onProgress: () => undefined, abort }),
  );
  await app.close();
};

const main = async (): Promise<void> => {
  await projectLive();
  await buildFirst();
  rmSync(folder, { recursive: true, force: true });
};

void main();
