import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projections } from '../projections/projections';
import { openApp, type App } from '../src/app';
import { readConfiguration } from '../src/configuration';
import { factTypes } from '../src/domain/facts';
import { rebuild } from '../src/projecting/rebuild';
import { verify } from '../src/projecting/verify';
import { generationName } from '../src/read-models/read-models';

/**
 * How fast are all projections rebuilt beside a projecting process, how long does a verify take compared with that, and
 * how soon is a switch seen? `npm run bench:replay [EVENTS]`
 */
const EVENTS = Number(process.argv[2] ?? 200_000);
const BATCH = 100;
const PATIENCE_MS = 3_600_000;
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

/** From the move of the pointer until a server in the same process reads the new generation. */
const untilRead = async ({ projecting }: App, name: string, generation: string): Promise<number> =>
  seconds(async () => {
    while (generationName(projecting.reader(name).id) !== generation)
      await new Promise((resolve) => setImmediate(resolve));
  });

const rebuildAll = async (app: App) => {
  const switches: number[] = [];
  let total = 0;
  for (const projector of projections) {
    const steps = new Map<string, number>();
    const began = performance.now();
    const tell = ({ step }: { step: string }): void =>
      void steps.set(step, (performance.now() - began) / 1_000);
    const { generation } = await rebuild(app.replay, projector, { ifEqual: true, acceptParked: false, tell });
    const took = (performance.now() - began) / 1_000;
    switches.push(await untilRead(app, projector.name, generation));
    total += took;
    const at = (step: string): string => (steps.get(step) ?? 0).toFixed(1);
    console.log(
      `  ${projector.name}: ${took.toFixed(1)} s (indexes from ${at('indexing')}, comparing from ${at('comparing')}, switching from ${at('switching')})`,
    );
  }
  return { total, slowestSwitch: Math.max(...switches) };
};

const verifyAll = async (app: App): Promise<void> => {
  const scratch = await app.scratch();
  for (const live of app.projecting.live) {
    const onDifference = (): never => {
      throw new Error('There is a difference.');
    };
    await verify(app.replay, scratch.readModels, live, { onDifference, onProgress: () => undefined });
  }
  await scratch.remove();
};

const main = async (): Promise<void> => {
  const app = await openApp(readConfiguration({ DATA_DIR: folder }), (what, error) =>
    console.error(what, error),
  );
  await fill(app);
  await app.projecting.start();
  const head = (await app.log.head())?.position ?? '';
  if (!(await app.projecting.reached(head, PATIENCE_MS))) throw new Error('The read models are behind.');
  const { total, slowestSwitch } = await rebuildAll(app);
  const verifying = await seconds(() => verifyAll(app));
  console.log(`rebuild of all projections: ${total.toFixed(1)} s, ${Math.round(EVENTS / total)} events/s`);
  console.log(`verify of all: ${verifying.toFixed(1)} s, ${(verifying / total).toFixed(2)} of a rebuild`);
  console.log(`slowest switch: ${Math.round(slowestSwitch * 1_000)} ms`);
  console.log(`memory: ${Math.round(process.resourceUsage().maxRSS / 1_024)} MB at most`);
  await app.close();
  rmSync(folder, { recursive: true, force: true });
};

void main();
