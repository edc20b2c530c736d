import { mkdtempSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { at, bench, builds, byTurns, givenNumbers, type Build, type Figures } from './builds';
import { makeLog } from './given-log';
import { caughtUp, startServer, type Server } from './processes';

/**
 * How long does the proof of a row take in a long log of one tenant, and how much disk does a row of the read models
 * occupy? With BASE, the `main.js` of another build takes turns. `npm run bench -- proofs [EVENTS] [PROOFS]`
 */
const [EVENTS = 1_000_000, PROOFS = 500] = givenNumbers;
const SIZE = 100;

const random = (end: number): number => Math.floor(Math.random() * end);

const ask = async ({ url }: Server, key: string, path: string): Promise<Response> =>
  fetch(`${url}${path}`, { headers: { 'SVC-API-KEY': key } });

/** The id of some row. */
const someId = async (server: Server, key: string): Promise<string> => {
  const page = await ask(server, key, `/logs?size=${SIZE}&page=${1 + random(EVENTS / SIZE)}`);
  const { data } = (await page.json()) as { readonly data: readonly { readonly id: string }[] };
  return data[random(data.length)]?.id ?? '';
};

/** None: this build has no proofs. */
const timesOfProofs = async (server: Server, key: string): Promise<readonly number[]> => {
  const times: number[] = [];
  for (let n = 0; n < PROOFS; n += 1) {
    const id = await someId(server, key);
    const began = performance.now();
    const proof = await ask(server, key, `/events/${id}/proof`);
    const text = await proof.text();
    if (!proof.ok || !text.startsWith('c2sp.org/tlog-proof@v1')) return [];
    times.push(performance.now() - began);
  }
  return times;
};

const bytesIn = (folder: string): number =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /^set-.*\.db$/.test(entry.name))
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);

const measure = async (root: string, { name, main }: Build): Promise<Figures> => {
  const env = { DATA_DIR: mkdtempSync(join(root, `${name}-`)), RATE_LIMITS: 'off', LOG_LEVEL: 'warn' };
  const [customer] = await makeLog(env, { tenants: 1, facts: EVENTS }, main);
  const server = await startServer(env, main);
  await caughtUp(server);
  const times = await timesOfProofs(server, customer?.key ?? '');
  await server.stop();
  return {
    'p50 ms of a proof': at(times, 0.5),
    'p99 ms of a proof': at(times, 0.99),
    'longest ms': at(times, 1),
    'bytes of disk a row': bytesIn(env.DATA_DIR) / EVENTS,
  };
};

void bench((root) => byTurns(`a log of ${EVENTS} facts`, 1, (build) => measure(root, build), builds));
