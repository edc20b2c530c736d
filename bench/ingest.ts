import {
  closeSync,
  fdatasyncSync,
  mkdtempSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { pause } from '../src/async/clock';
import { at, bench, byTurns, givenNumbers, type Build, type Figures } from './builds';
import { factLines } from './facts';
import { makeLog } from './given-log';
import { caughtUp, runToEnd, startServer, type Environment, type Server } from './processes';

/**
 * How fast does `ingest` run next to a server, until the read models contain every fact, and how long does a change to
 * another tenant take meanwhile until it is shown? With BASE, the `main.js` of another build takes turns.
 * `npm run bench -- ingest [ROUNDS] [FACTS…]`
 */
const [ROUNDS = 2, ...GIVEN_SIZES] = givenNumbers;
const SIZES = GIVEN_SIZES.length > 0 ? GIVEN_SIZES : [40_000, 100_000];
const TENANTS = 10;
const LINES_PER_SYNC = 100;
const BETWEEN_PUTS_MS = 10;

/** The baseline of the disk: appends the same lines to a file, with an fdatasync as often as the log does one. */
const plainAppend = (root: string, file: string): number => {
  const lines = readFileSync(file, 'utf8').split('\n');
  const began = performance.now();
  const copy = openSync(join(root, 'plain.ndjson'), 'a');
  for (let from = 0; from < lines.length; from += LINES_PER_SYNC) {
    writeSync(copy, `${lines.slice(from, from + LINES_PER_SYNC).join('\n')}\n`);
    fdatasyncSync(copy);
  }
  closeSync(copy);
  return (performance.now() - began) / 1_000;
};

interface Puts {
  /** Milliseconds until each change was shown. */
  readonly times: readonly number[];
  /** How many were answered before they were shown. */
  readonly pending: number;
}

/** Changes a tenant again and again, until the returned function is called. */
export const startPuts = ({ url }: Server, key: string): (() => Promise<Puts>) => {
  const headers = { 'SVC-API-KEY': key, 'Content-Type': 'application/json' };
  const request = async (body?: string): Promise<Response> =>
    fetch(`${url}/tenants/self`, body === undefined ? { headers } : { method: 'PUT', headers, body });
  const times: number[] = [];
  let [pending, isOver] = [0, false];

  const isShown = async (name: string): Promise<boolean> => {
    const response = await request();
    const tenant = (await response.json()) as { readonly name?: string };
    return tenant.name === name;
  };
  const change = async (name: string): Promise<void> => {
    const began = performance.now();
    const response = await request(JSON.stringify({ name }));
    const text = await response.text();
    if (response.status !== 200) throw new Error(`PUT: ${response.status} ${text}`);
    if (response.headers.has('SVC-READ-PENDING')) {
      pending += 1;
      while (!(await isShown(name))) await pause(1);
    }
    times.push(performance.now() - began);
  };
  const changeAll = async (): Promise<void> => {
    for (let n = 0; !isOver; n += 1) {
      await change(`Name ${n}`);
      await pause(BETWEEN_PUTS_MS);
    }
  };
  const changing = changeAll();
  return async () => {
    isOver = true;
    await changing;
    return { times, pending };
  };
};

export const measureIngest = async (
  root: string,
  { name, main }: Build,
  facts: number,
  place: Environment = {},
): Promise<Figures> => {
  const env = { DATA_DIR: mkdtempSync(join(root, `${name}-`)), ...place };
  const [other, ...tenants] = await makeLog(env, { tenants: TENANTS + 1 }, main);
  const file = join(root, `${facts}.ndjson`);
  const ids = tenants.map(({ tenantId }) => tenantId);
  writeFileSync(file, factLines(ids, facts));
  const plain = plainAppend(root, file);
  const server = await startServer({ ...env, RATE_LIMITS: 'off' }, main);
  const puts = startPuts(server, other?.key ?? '');
  const began = performance.now();
  const { seconds: appended } = await runToEnd(['ingest', file], env, main);
  // A log that is written to all the time is never followed to its end in a cluster.
  const { times, pending } = await puts();
  await caughtUp(server);
  const shown = (performance.now() - began) / 1_000;
  await server.stop();
  return {
    'facts/s until shown': facts / shown,
    'facts/s until ingest ended': facts / appended,
    'lines/s to a plain file': facts / plain,
    'PUTs meanwhile': times.length,
    'p50 ms': at(times, 0.5),
    'p99 ms': at(times, 0.99),
    'longest ms': at(times, 1),
    'answered before shown': pending,
  };
};

if (require.main === module)
  void bench(async (root) => {
    for (const facts of SIZES)
      await byTurns(`ingest of ${facts} facts`, ROUNDS, (build) => measureIngest(root, build, facts));
  });
