import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { bench, builds, byTurns, givenNumbers, type Build, type Figures } from './builds';
import { makeLog } from './given-log';
import { caughtUp, runToEnd, startServer, type Environment, type Ran, type Server } from './processes';

/**
 * How fast are all read models rebuilt next to a server by `projections rebuild`, and how long does a verify take in
 * comparison? With BASE, the `main.js` of another build takes turns. `npm run bench -- replay [ROUNDS] [EVENTS]`
 */
const [ROUNDS = 2, EVENTS = 200_000] = givenNumbers;

/** Earlier builds ask for the names of the projections, or for all of them. */
const takesAll = async ({ main }: Build): Promise<boolean> =>
  (await runToEnd(['projections', 'rebuild', '--help'], {}, main)).stdout.includes('--all');

interface Given {
  readonly env: Environment;
  readonly server: Server;
  readonly all: readonly string[];
}

const give = async (root: string, build: Build, events: number, stores: Environment): Promise<Given> => {
  const env = { DATA_DIR: mkdtempSync(join(root, `${build.name}-`)), ...stores };
  await makeLog(env, { tenants: 10, facts: events }, build.main);
  const server = await startServer(env, build.main);
  await caughtUp(server);
  return { env, server, all: (await takesAll(build)) ? ['--all'] : [] };
};

const measure = async ({ env, all }: Given, { main }: Build, events: number): Promise<Figures> => {
  const run = (...args: readonly string[]): Promise<Ran> => runToEnd(['projections', ...args], env, main);
  const rebuilt = await run('rebuild', ...all);
  const verified = await run('verify');
  return {
    'rebuilt, events/s': events / rebuilt.seconds,
    'µs of processor each': (rebuilt.used.processorSeconds * 1e6) / events,
    'MB at most': rebuilt.used.mostMemory,
    'verified, events/s': events / verified.seconds,
    'verify to rebuild': verified.seconds / rebuilt.seconds,
  };
};

/** On SQLite, or in stores that are named for each build. */
export const replayByTurns = async (
  root: string,
  events: number,
  rounds: number,
  stores: () => Environment = () => ({}),
): Promise<void> => {
  const given = new Map<Build, Given>();
  for (const build of builds) given.set(build, await give(root, build, events, stores()));
  await byTurns(`replay of ${events} events`, rounds, (build) =>
    measure(given.get(build) as Given, build, events),
  );
  for (const { server } of given.values()) await server.stop();
};

if (require.main === module) void bench((root) => replayByTurns(root, EVENTS, ROUNDS));
