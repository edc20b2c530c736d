import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { bench, builds, byTurns, type Build, type Figures } from './builds';
import { makeLog } from './given-log';
import { caughtUp, runToEnd, startServer, type Ran, type Server } from './processes';

/**
 * How fast are all read models rebuilt next to a server by `projections rebuild`, and how long does a verify take in
 * comparison? With BASE, the `main.js` of another build takes turns. `npm run bench -- replay [ROUNDS] [EVENTS]`
 */
const ROUNDS = Number(process.argv[2] ?? 2);
const EVENTS = Number(process.argv[3] ?? 200_000);

/** Earlier builds ask for the names of the projections, or for all of them. */
const takesAll = async ({ main }: Build): Promise<boolean> =>
  (await runToEnd(['projections', 'rebuild', '--help'], {}, main)).stdout.includes('--all');

interface Given {
  readonly DATA_DIR: string;
  readonly server: Server;
  readonly all: readonly string[];
}

const give = async (root: string, build: Build): Promise<Given> => {
  const DATA_DIR = mkdtempSync(join(root, `${build.name}-`));
  await makeLog({ DATA_DIR }, { tenants: 10, facts: EVENTS }, build.main);
  const server = await startServer({ DATA_DIR }, build.main);
  await caughtUp(server);
  return { DATA_DIR, server, all: (await takesAll(build)) ? ['--all'] : [] };
};

const measure = async ({ DATA_DIR, all }: Given, { main }: Build): Promise<Figures> => {
  const run = (...args: readonly string[]): Promise<Ran> =>
    runToEnd(['projections', ...args], { DATA_DIR }, main);
  const rebuilt = await run('rebuild', ...all);
  const verified = await run('verify');
  return {
    'rebuilt, events/s': EVENTS / rebuilt.seconds,
    'µs of processor each': (rebuilt.used.processorSeconds * 1e6) / EVENTS,
    'MB at most': rebuilt.used.mostMemory,
    'verified, events/s': EVENTS / verified.seconds,
    'verify to rebuild': verified.seconds / rebuilt.seconds,
  };
};

void bench(async (root) => {
  const given = new Map<Build, Given>();
  for (const build of builds) given.set(build, await give(root, build));
  await byTurns(`replay of ${EVENTS} events`, ROUNDS, (build) => measure(given.get(build) as Given, build));
  for (const { server } of given.values()) await server.stop();
});
