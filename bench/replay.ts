import { closeSync, fsyncSync, mkdtempSync, openSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projections } from '../projections/projections';
import { openApp, type App } from '../src/app/app';
import { readConfiguration } from '../src/configuration';
import type { RebuildStep } from '../src/projecting/rebuild';
import { generationName } from '../src/read-models/read-models';
import { rebuildInWorkers, verifyInWorkers } from '../src/app/replay-workers';
import { appendFacts, seconds } from './facts';

/**
 * How fast are all projections rebuilt next to a projecting process, how long does a verify take in comparison, and how
 * soon does a switch take effect? `npm run bench -- replay [EVENTS]`
 */
const EVENTS = Number(process.argv[2] ?? 200_000);
const TIMEOUT_MS = 3_600_000;
const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));

/** Otherwise the kernel would still write back the prepared data during the measurement. */
const syncFiles = (path: string): void => {
  for (const { name, parentPath } of readdirSync(path, { recursive: true, withFileTypes: true }))
    if (name.includes('.db')) {
      const file = openSync(join(parentPath, name), 'r+');
      fsyncSync(file);
      closeSync(file);
    }
};

/** Measured from the move of the pointer until the app in this process reads the new generation. */
const untilRead = async ({ projecting }: App, generation: string): Promise<number> =>
  seconds(async () => {
    const isRead = (): boolean =>
      projecting.live.some(({ generation: live }) => generationName(live.id) === generation);
    while (!isRead()) await new Promise((resolve) => setImmediate(resolve));
  });

const configuration = readConfiguration({ DATA_DIR: folder });
const onError = (what: string, error: unknown): void => console.error(what, error);

const rebuildAll = async (app: App) => {
  const began = performance.now();
  const steps = new Set<string>();
  const onStep = (name: string, { step }: RebuildStep): void => {
    if (steps.has(`${name} ${step}`)) return;
    steps.add(`${name} ${step}`);
    console.log(`  ${name} ${step} from ${((performance.now() - began) / 1_000).toFixed(1)} s`);
  };
  const options = { acceptDifferences: false };
  const outcomes = await rebuildInWorkers(configuration, projections, options, { onError, onStep });
  const total = (performance.now() - began) / 1_000;
  const switches = outcomes.map((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason as Error;
    return untilRead(app, outcome.value.generation);
  });
  return { total, slowestSwitch: Math.max(...(await Promise.all(switches))) };
};

const verifyAll = (): Promise<unknown> =>
  verifyInWorkers(configuration, projections, undefined, {
    onError,
    onProgress: () => undefined,
    onDifference: () => {
      throw new Error('There is a difference.');
    },
  });

const main = async (): Promise<void> => {
  const app = await openApp(configuration, onError);
  await appendFacts(app, EVENTS);
  await app.projecting.start();
  const head = (await app.log.head())?.position ?? '';
  if (!(await app.projecting.reached(head, TIMEOUT_MS))) throw new Error('The read models are behind.');
  syncFiles(folder);
  const before = process.cpuUsage();
  const { total, slowestSwitch } = await rebuildAll(app);
  const { user, system } = process.cpuUsage(before);
  const verifying = await seconds(() => verifyAll());
  console.log(
    `rebuild of all projections: ${total.toFixed(1)} s, ${Math.round(EVENTS / total)} events/s, ${((user + system) / EVENTS).toFixed(1)} µs of CPU each`,
  );
  console.log(`verify of all: ${verifying.toFixed(1)} s, ${(verifying / total).toFixed(2)} of a rebuild`);
  console.log(`slowest switch: ${Math.round(slowestSwitch * 1_000)} ms`);
  console.log(`memory: ${Math.round(process.resourceUsage().maxRSS / 1_024)} MB at most`);
  await app.close();
  rmSync(folder, { recursive: true, force: true });
};

void main();
