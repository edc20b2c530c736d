import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { pause } from '../src/async/clock';
import { anEvent } from '../test/support/events';
import { at, median, type Build, type Figures } from './builds';
import { UNLIMITED } from './cluster-puts';
import { appendFacts } from './facts';
import { makeLog, openLogOf, type Customer } from './given-log';
import { caughtUp, startServer, type Environment, type Server } from './processes';
import { inOwnPlace, proxiedMongodb } from './stores';

/**
 * How soon are 20,000 facts of one tenant shown that another program appends to the event store, and what does a client
 * of another tenant notice meanwhile?
 */
const FACTS = 20_000;
const WARM_UP_MS = 3_000;
const QUIET_MS = 10_000;
/** From the start of one to the start of the next. */
const PUTS_MS = 25;
const APPENDS_MS = 100;
const LOOKS_MS = 100;
/** An event store that takes this long for an append alone is too busy for a statement about the service. */
const BUSY_MS = 1_000;

interface Timed {
  readonly from: number;
  readonly ms: number;
}

interface Put extends Timed {
  readonly isPending: boolean;
}

/** Does something again and again, until the returned function is called, which returns what was done. */
const repeated = <T extends Timed>(everyMs: number, work: () => Promise<Omit<T, keyof Timed>>) => {
  const done: T[] = [];
  let isOver = false;
  const run = async (): Promise<void> => {
    while (!isOver) {
      const from = performance.now();
      const result = await work();
      const ms = performance.now() - from;
      done.push({ ...result, from, ms } as T);
      await pause(Math.max(0, everyMs - ms));
    }
  };
  const running = run();
  return async (): Promise<readonly T[]> => {
    isOver = true;
    await running;
    return done;
  };
};

const startPuts = ({ url }: Server, { key }: Customer) => {
  const headers = { 'SVC-API-KEY': key, 'Content-Type': 'application/json' };
  let n = 0;
  return repeated<Put>(PUTS_MS, async () => {
    const body = JSON.stringify({ name: `Name ${(n += 1)}` });
    const response = await fetch(`${url}/tenants/self`, { method: 'PUT', headers, body });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`PUT: ${response.status} ${text}`);
    const late = [...response.headers.keys()].some((name) => /-(read-pending|complete-until)$/.test(name));
    return { isPending: late };
  });
};

type OpenedLog = Awaited<ReturnType<typeof openLogOf>>;

/** One event after the other to a stream that the service does not read. */
const startAppends = ({ log, streams }: OpenedLog) => {
  const stream = streams.tenant(randomUUID());
  let revision = -1;
  return repeated<Timed>(APPENDS_MS, async () => {
    ({ revision } = await log.append(stream, [anEvent()], revision < 0 ? 'no_stream' : revision, 60_000));
    return {};
  });
};

/** The number of rows that the tenant is shown. */
const rowsOf = async ({ url }: Server, { key }: Customer): Promise<number> => {
  const response = await fetch(`${url}/logs?size=1`, { headers: { 'SVC-API-KEY': key } });
  const { pagination } = (await response.json()) as { pagination?: { total_items: number } };
  return pagination?.total_items ?? 0;
};

/** The program that appends: a process of its own, which begins when it is told to. */
const startAppender = async (env: Environment, { main }: Build, { tenantId }: Customer) => {
  const child = fork(__filename, [JSON.stringify(env), main, tenantId]);
  await once(child, 'message');
  return async (): Promise<void> => {
    const exited = once(child, 'exit');
    child.send('append');
    const [code] = (await exited) as [number];
    if (code !== 0) throw new Error(`The facts could not be appended: ${code}`);
  };
};

const appendWhenTold = async (env: Environment, main: string, tenantId: string): Promise<void> => {
  const opened = await openLogOf(env, main);
  process.send?.('ready');
  await once(process, 'message');
  await appendFacts(opened, FACTS, [tenantId]);
  await opened.log.close();
  process.disconnect();
};

/** The rate at which facts are shown, and how long it took to append them. */
const showFacts = async (server: Server, customer: Customer, append: () => Promise<void>) => {
  const before = await rowsOf(server, customer);
  const began = performance.now();
  await append();
  const appended = (performance.now() - began) / 1_000;
  while ((await rowsOf(server, customer)) < before + FACTS) await pause(LOOKS_MS);
  return { rate: (FACTS * 1_000) / (performance.now() - began), appended };
};

const overlap = (one: Timed, other: Timed): boolean =>
  one.from < other.from + other.ms && other.from < one.from + one.ms;

/** Without those that were under way while the event store alone was too slow, which are printed. */
const judged = (puts: readonly Put[], appends: readonly Timed[], build: Build): readonly Put[] => {
  const busy = appends.filter(({ ms }) => ms > BUSY_MS);
  const kept = puts.filter((put) => !busy.some((append) => overlap(put, append)));
  for (const { from, ms } of busy)
    console.log(
      `${build.name}: excluded ${(ms / 1_000).toFixed(1)} s, ${((from - (puts[0]?.from ?? from)) / 1_000).toFixed(1)} s after the burst began: so long took a bare append`,
    );
  if (busy.length > 0) console.log(`${build.name}: excluded ${puts.length - kept.length} PUTs in them`);
  return kept;
};

const msOf = (timed: readonly Pick<Timed, 'ms'>[]): readonly number[] => timed.map(({ ms }) => ms);

const measureServer = async (
  build: Build,
  env: Environment,
  transactions: (reset: boolean) => readonly { readonly ms: number; readonly commitMs: number }[],
): Promise<Figures> => {
  const [one, other] = (await makeLog(env, { tenants: 2 }, build.main)) as [Customer, Customer];
  const server = await startServer(env, build.main);
  await caughtUp(server);
  const ofOthers = { ...env, STREAM_PREFIX: `others-${env['STREAM_PREFIX']}` };
  const probe = await openLogOf(ofOthers, build.main);
  const append = await startAppender(env, build, one);
  const warmUp = startPuts(server, other);
  await pause(WARM_UP_MS);
  await warmUp();
  const quietPuts = startPuts(server, other);
  await pause(QUIET_MS);
  const quiet = await quietPuts();
  transactions(true);
  const [puts, appends] = [startPuts(server, other), startAppends(probe)];
  const { rate, appended } = await showFacts(server, one, append);
  const [done, bare] = [await puts(), await appends()];
  const commits = transactions(false);
  await probe.log.close();
  await server.stop();
  const busy = judged(done, bare, build);
  const [quietP99, p99, commit] = [at(msOf(quiet), 0.99), at(msOf(busy), 0.99), median(msOf(commits))];
  return {
    'facts/s until shown': rate,
    's to append them': appended,
    'PUTs meanwhile': busy.length,
    'READ-PENDING': busy.filter(({ isPending }) => isPending).length,
    'PUTs excluded': done.length - busy.length,
    'bare append, p99 ms': at(msOf(bare), 0.99),
    'quiet p50 ms': at(msOf(quiet), 0.5),
    'quiet p99 ms': quietP99,
    'quiet READ-PENDING': quiet.filter(({ isPending }) => isPending).length,
    'p50 ms': at(msOf(busy), 0.5),
    'p99 ms': p99,
    transactions: commits.length,
    'median transaction, ms': commit,
    'p99 over quiet p99, in transactions': (p99 - quietP99) / commit,
    'median commit alone, ms': median(commits.map(({ commitMs }) => commitMs)),
  };
};

export const measureBurst = async (root: string, build: Build, mongodbUrl: string): Promise<Figures> => {
  const { url, roundTrips, close } = await proxiedMongodb(mongodbUrl);
  const transactions = (reset: boolean) => {
    if (reset) roundTrips.reset();
    return roundTrips.transactions();
  };
  const figures = await inOwnPlace(url, (place) => {
    const env = { DATA_DIR: mkdtempSync(join(root, `${build.name}-`)), ...UNLIMITED, ...place };
    return measureServer(build, env, transactions);
  });
  await close();
  return figures;
};

if (require.main === module) {
  const [env = '{}', main = '', tenantId = ''] = process.argv.slice(2);
  void appendWhenTold(JSON.parse(env) as Environment, main, tenantId);
}
