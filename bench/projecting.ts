import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bench, byTurns, type Build, type Figures } from './builds';
import { factLines } from './facts';
import { makeLog } from './given-log';
import { caughtUp, runToEnd, startServer, usedBy } from './processes';

/**
 * How fast does a server project events that it finds in the log into all read models, with all indexes: into read
 * models that are behind, and into new ones? Each figure includes the start of the program. With BASE, the `main.js` of
 * another build takes turns. `npm run bench -- projecting [ROUNDS] [EVENTS]`
 */
const ROUNDS = Number(process.argv[2] ?? 2);
const EVENTS = Number(process.argv[3] ?? 100_000);

/** From the start of a server until it shows everything. */
const measureStart = async (DATA_DIR: string, main: string) => {
  const began = performance.now();
  const server = await startServer({ DATA_DIR }, main);
  await caughtUp(server);
  const seconds = (performance.now() - began) / 1_000;
  const { processorSeconds } = usedBy(server.pid);
  await server.stop();
  return { rate: EVENTS / seconds, cost: (processorSeconds * 1e6) / EVENTS };
};

const measure = async (root: string, { name, main }: Build): Promise<Figures> => {
  const DATA_DIR = mkdtempSync(join(root, `${name}-`));
  const readModels = join(DATA_DIR, 'read-models');
  const customers = await makeLog({ DATA_DIR }, { tenants: 10 }, main);
  await (await startServer({ DATA_DIR }, main)).stop();
  const behind = join(root, `${name}-behind`);
  cpSync(readModels, behind, { recursive: true });
  const file = join(root, 'facts.ndjson');
  const tenants = customers.map(({ tenantId }) => tenantId);
  writeFileSync(file, factLines(tenants, EVENTS));
  await runToEnd(['ingest', file], { DATA_DIR }, main);

  rmSync(readModels, { recursive: true });
  cpSync(behind, readModels, { recursive: true });
  const live = await measureStart(DATA_DIR, main);
  rmSync(readModels, { recursive: true });
  const first = await measureStart(DATA_DIR, main);
  for (const folder of [behind, DATA_DIR]) rmSync(folder, { recursive: true });
  return {
    'behind, events/s': live.rate,
    'µs of processor each': live.cost,
    'new, events/s': first.rate,
    'µs of processor for each': first.cost,
  };
};

void bench((root) => byTurns(`projecting ${EVENTS} events`, ROUNDS, (build) => measure(root, build)));
