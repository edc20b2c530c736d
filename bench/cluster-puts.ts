import { availableParallelism, cpus } from 'node:os';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { type Build, type Figures } from './builds';
import { startFloor } from './cluster-floor';
import { MANY, measureLoad, put, startService, type Measured, type Target } from './http-load';
import { startServer, type Environment } from './processes';
import { inOwnPlace, proxiedMongodb } from './stores';

/** PUTs of many clients, each to its own tenant, to one instance and to two. */

const SECONDS = 5;
const WARM_UP_SECONDS = 4;
const CROWD = 64;
const SLOW_SECONDS = 8;
const COMMIT_MS = 100;
export const UNLIMITED = { RATE_LIMITS: 'off' };

/** What is measured in place of a build: the least that a clustered write can do. */
export const FLOOR: Build = { name: 'floor', main: '' };

const startFloorOrService = async (
  root: string,
  { name, main }: Build,
  place: Environment,
): Promise<Target> => {
  if (name !== FLOOR.name) return startService(root, { ...UNLIMITED, ...place }, main, CROWD);
  const keys = Array.from({ length: CROWD }, (_, n) => `tenant-${n}`);
  return { server: await startFloor(place), keys };
};

const figuresOf = (connections: number, { rate, p50, p99, cost, late, refused }: Measured): Figures => ({
  ...(connections === 1 ? { '1: p50 ms': p50 } : { [`${connections}: PUTs/s`]: rate }),
  [`${connections}: p99 ms`]: p99,
  [`${connections}: µs of processor`]: cost,
  [`${connections}: READ-PENDING`]: late,
  [`${connections}: refused (503)`]: refused,
});

const measurePuts = async (target: Target, crowds: readonly number[]): Promise<Figures> => {
  await measureLoad(target, put('warm-up', CROWD), WARM_UP_SECONDS);
  const figures: Figures[] = [];
  for (const connections of crowds)
    figures.push(figuresOf(connections, await measureLoad(target, put('', connections), SECONDS)));
  await target.server.stop();
  return Object.assign({}, ...figures) as Figures;
};

export const measureClusteredPuts = (root: string, build: Build, mongodbUrl: string): Promise<Figures> =>
  inOwnPlace(mongodbUrl, async (place) =>
    measurePuts(await startFloorOrService(root, build, place), [1, MANY, CROWD]),
  );

export const measureEmbeddedPuts = async (root: string, { main }: Build): Promise<Figures> =>
  measurePuts(await startService(root, UNLIMITED, main), [1, MANY]);

/** The same load on each of them at once. */
const measureAll = (
  targets: readonly Target[],
  connections: number,
  seconds: number,
): Promise<readonly Measured[]> =>
  Promise.all(targets.map((target) => measureLoad(target, put('', connections), seconds)));

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

/** Two instances in one place, each with its own half of the tenants; the second one is started by a function. */
const startPair = async (root: string, { main }: Build, place: Environment, tenants: number) => {
  const env = { ...UNLIMITED, ...place };
  const { server, keys } = await startService(root, env, main, tenants);
  const half = keys.length / 2;
  return {
    one: { server, keys },
    first: { server, keys: keys.slice(0, half) },
    startSecond: async (): Promise<Target> => ({
      server: await startServer({ DATA_DIR: mkdtempSync(join(root, 'data-')), ...env }, main),
      keys: keys.slice(half),
    }),
  };
};

/** Two instances with 32 clients each, compared with one that has all 64. */
export const measureInstances = (root: string, build: Build, mongodbUrl: string): Promise<Figures> =>
  inOwnPlace(mongodbUrl, async (place) => {
    const { one, first, startSecond } = await startPair(root, build, place, CROWD);
    await measureLoad(one, put('warm-up', CROWD), WARM_UP_SECONDS);
    const alone = await measureLoad(one, put('', CROWD), SECONDS);
    const pair = [first, await startSecond()];
    await measureAll(pair, CROWD / 2, WARM_UP_SECONDS);
    const both = await measureAll(pair, CROWD / 2, SECONDS);
    for (const { server } of pair) await server.stop();
    const together = sum(both.map(({ rate }) => rate));
    return {
      'one instance, PUTs/s': alone.rate,
      'two instances, PUTs/s': together,
      'two of one': together / alone.rate,
      'READ-PENDING': sum([alone, ...both].map(({ late }) => late)),
      'refused (503)': sum([alone, ...both].map(({ refused }) => refused)),
    };
  });

/** Seconds that all processors of this machine worked. */
const workedSeconds = (): number =>
  sum(cpus().map(({ times: { user, nice, sys, irq } }) => user + nice + sys + irq)) / 1_000;

/** Two instances with 64 clients each, compared with one, while each commit takes a while that costs nothing. */
export const measureSlowCommits = async (
  root: string,
  build: Build,
  mongodbUrl: string,
): Promise<Figures> => {
  const proxy = await proxiedMongodb(mongodbUrl);
  const groups = async (targets: readonly Target[]) => {
    await measureAll(targets, CROWD, WARM_UP_SECONDS);
    const [before, worked, began] = [
      proxy.roundTrips.transactions().length,
      workedSeconds(),
      performance.now(),
    ];
    const measured = await measureAll(targets, CROWD, SLOW_SECONDS);
    const seconds = (performance.now() - began) / 1_000;
    return {
      perSecond: (proxy.roundTrips.transactions().length - before) / seconds,
      processor: (100 * (workedSeconds() - worked)) / seconds / availableParallelism(),
      rate: sum(measured.map(({ rate }) => rate)),
      late: sum(measured.map(({ late }) => late)),
      refused: sum(measured.map(({ refused }) => refused)),
    };
  };
  const figures = await inOwnPlace(proxy.url, async (place) => {
    const { first, startSecond } = await startPair(root, build, place, 2 * CROWD);
    const second = await startSecond();
    const action = { type: 'slow', ms: COMMIT_MS, when: 'after' } as const;
    proxy.faults.add({ command: 'commitTransaction', times: Infinity, action });
    const [one, two] = [await groups([first]), await groups([first, second])];
    proxy.faults.clear();
    for (const { server } of [first, second]) await server.stop();
    return {
      'one instance, groups/s': one.perSecond,
      'two instances, groups/s': two.perSecond,
      'two of one': two.perSecond / one.perSecond,
      'one, processor %': one.processor,
      'two, processor %': two.processor,
      'one, PUTs/s': one.rate,
      'two, PUTs/s': two.rate,
      'READ-PENDING': one.late + two.late,
      'refused (503)': one.refused + two.refused,
    };
  });
  await proxy.close();
  return figures;
};
