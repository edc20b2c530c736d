import Koa from 'koa';
import bodyParser from 'koa-bodyparser';
import { mkdtempSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { bench, builds, median, printFigures } from './builds';
import { MANY, measureByTurns, put, startService, type Load, type Target } from './http-load';
import { startPrinting } from './processes';
import type { FloorWrite } from './write-floor-worker';

/**
 * How close is a write to what its libraries cost? `PUT /tenants/self` of one client, and of 32 connections to 32
 * tenants, by turns with a floor: Koa, one writing thread, an append with fsync, four small read models committed, one
 * answer. With BASE, the `main.js` of another build takes turns as well. `npm run bench -- write-floor [ROUNDS] [SECONDS]`
 */
const ROUNDS = Number(process.argv[2] ?? 5);
const SECONDS = Number(process.argv[3] ?? 2);

const serveFloor = (folder: string): void => {
  const worker = new Worker(join(__dirname, 'write-floor-worker.js'), { workerData: { folder } });
  const waiting = new Map<number, () => void>();
  let requests: FloorWrite[] = [];
  let nextId = 0;
  worker.on('message', (ids: readonly number[]) => {
    for (const id of ids) {
      waiting.get(id)?.();
      waiting.delete(id);
    }
  });
  const write = (tenant: string, body: string): Promise<void> =>
    new Promise((resolve) => {
      waiting.set(++nextId, resolve);
      if (requests.push({ id: nextId, tenant, body }) > 1) return;
      setImmediate(() => {
        worker.postMessage(requests);
        requests = [];
      });
    });
  const app = new Koa();
  app.use(bodyParser());
  app.use(async (ctx) => {
    await write(ctx.get('SVC-API-KEY'), JSON.stringify(ctx.request.body));
    ctx.body = ctx.request.body;
  });
  const server = app.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    console.log(`The floor serves http://127.0.0.1:${port}`);
  });
};

const startAll = async (root: string): Promise<readonly [name: string, target: Target][]> => {
  const keys = Array.from({ length: MANY }, (_, i) => `tenant-${i}`);
  const folder = mkdtempSync(join(root, 'floor-'));
  const targets: [name: string, target: Target][] = [
    ['floor', { server: await startPrinting([__filename, '0', '0', folder]), keys }],
  ];
  for (const { name, main } of builds) targets.push([name, await startService(root, {}, main)]);
  return targets;
};

const measure = async (root: string): Promise<void> => {
  const targets = await startAll(root);
  const loads = new Map<Load, Target>(
    [1, MANY].flatMap((connections) =>
      targets.map(([name, target]) => [put(name, connections), target] as const),
    ),
  );
  const measured = await measureByTurns(loads, ROUNDS, SECONDS);
  const floorOf = ({ connections }: Load) =>
    [...measured].find(([load]) => load.name === 'floor' && load.connections === connections)?.[1] ?? [];
  for (const [load, each] of measured) {
    const rate = median(each.map((result) => result.rate));
    printFigures(`PUT, ${load.name}, ${load.connections} connections, median of ${ROUNDS}`, {
      'per second': rate,
      'ms each': (load.connections * 1_000) / rate,
      'µs of processor': median(each.map((result) => result.cost)),
      "of the floor's rate": median(
        each.map((result, round) => result.rate / (floorOf(load)[round]?.rate ?? NaN)),
      ),
    });
  }
  for (const [, { server }] of targets) await server.stop();
};

const [, , , , floorFolder] = process.argv;
if (floorFolder === undefined) void bench(measure);
else serveFloor(floorFolder);
