import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projections } from '../projections/projections';
import { openApp, type App } from '../src/app';
import { readConfiguration } from '../src/configuration';
import { sharedPages } from '../src/projecting/pages';
import { rebuildTogether } from '../src/projecting/rebuild';
import { verify } from '../src/projecting/verify';
import { generationName } from '../src/read-models/read-models';
import { together } from '../src/together';
import { appendFacts, seconds } from './facts';

/**
 * How fast are all projections rebuilt beside a projecting process, how long does a verify take compared with that, and
 * how soon is a switch seen? `npm run bench:replay [EVENTS]`
 */
const EVENTS = Number(process.argv[2] ?? 200_000);
const PATIENCE_MS = 3_600_000;
const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));

/** From the move of the pointer until a server in the same process reads the new generation. */
const untilRead = async ({ projecting }: App, name: string, generation: string): Promise<number> =>
  seconds(async () => {
    while (generationName(projecting.reader(name).id) !== generation)
      await new Promise((resolve) => setImmediate(resolve));
  });

const rebuildAll = async (app: App) => {
  const began = performance.now();
  const since = (): string => ((performance.now() - began) / 1_000).toFixed(1);
  const switches: Promise<number>[] = [];
  const done = await rebuildTogether(app.replay, projections, ({ name }) => {
    const steps = new Map<string, string>();
    return {
      ifEqual: true,
      acceptParked: false,
      tell: ({ step }) => {
        if (!steps.has(step)) console.log(`  ${name} ${step} from ${since()} s`);
        steps.set(step, since());
      },
    };
  });
  const total = (performance.now() - began) / 1_000;
  for (const one of done) {
    if (one.status === 'rejected') throw one.reason as Error;
    switches.push(untilRead(app, one.value.projection, one.value.generation));
  }
  return { total, slowestSwitch: Math.max(...(await Promise.all(switches))) };
};

const verifyAll = async (app: App): Promise<void> => {
  const scratch = await app.scratch();
  const onDifference = (): never => {
    throw new Error('There is a difference.');
  };
  const replay = { ...app.replay, pages: sharedPages(app.log, app.streams) };
  await together(
    app.projecting.live.map((live) =>
      verify(replay, scratch.readModels, live, { onDifference, onProgress: () => undefined }),
    ),
  );
  await scratch.remove();
};

const main = async (): Promise<void> => {
  const app = await openApp(readConfiguration({ DATA_DIR: folder }), (what, error) =>
    console.error(what, error),
  );
  await appendFacts(app, EVENTS);
  await app.projecting.start();
  const head = (await app.log.head())?.position ?? '';
  if (!(await app.projecting.reached(head, PATIENCE_MS))) throw new Error('The read models are behind.');
  const before = process.cpuUsage();
  const { total, slowestSwitch } = await rebuildAll(app);
  const { user, system } = process.cpuUsage(before);
  const verifying = await seconds(() => verifyAll(app));
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
