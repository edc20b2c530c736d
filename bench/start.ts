import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { bench, builds, byTurns } from './builds';
import { makeLog } from './given-log';
import { caughtUp, startServer } from './processes';

/**
 * How long does a start take when everything is built, until `/readyz` first answers 200? With BASE, the `main.js` of
 * another build takes turns. `npm run bench -- start [ROUNDS] [EVENTS]`
 */
const ROUNDS = Number(process.argv[2] ?? 5);
const EVENTS = Number(process.argv[3] ?? 200_000);

void bench(async (root) => {
  const folders = new Map<string, string>();
  for (const { name, main } of builds) {
    const DATA_DIR = mkdtempSync(join(root, `${name}-`));
    await makeLog({ DATA_DIR }, { tenants: 10, facts: EVENTS }, main);
    const server = await startServer({ DATA_DIR }, main);
    await caughtUp(server);
    await server.stop();
    folders.set(name, DATA_DIR);
  }
  await byTurns(`start with ${EVENTS} events`, ROUNDS, async ({ name, main }) => {
    const server = await startServer({ DATA_DIR: folders.get(name) ?? '' }, main);
    await server.stop();
    return { 'ms until ready': server.readyMs };
  });
});
