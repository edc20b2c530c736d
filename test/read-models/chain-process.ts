import { Socket } from 'node:net';
import { pause } from '../../src/async/clock';
import { codeOf, messageOf } from '../../src/fault';
import type { Commit, LiveSet, ReadModels, ReadModelSet } from '../../src/read-models/read-models';
import { hookSqlite } from '../support/hooked-sqlite';
import { randomFrom } from '../support/random';
import { record, sharedMs, type Deed } from './chain-history';
import { at, put } from './contract/storage';

/**
 * A process that does this and that with a chain of sets, one after the other, until it kills itself: before any
 * statement, or before or after anything that it sends. At such moments it may also be suspended, so that others overtake.
 */
export interface ChainOptions {
  readonly store: 'sqlite' | 'mongodb';
  /** A folder, or the URL of a database. */
  readonly place: string;
  readonly history: string;
  readonly seed: number;
}

export const CHAIN = { version: 'v1', collections: [{ name: 'counts', indexes: {} }], graceMs: 40 } as const;

export const LOG = 'some log';
const TENANT = '11111111-1111-4111-8111-111111111111';
export const COUNT = { tenantId: TENANT, collection: 'counts', key: 'n' };

/** A chain of one set. */
export const beginChain = async (readModels: ReadModels): Promise<boolean> =>
  readModels.succeed(await readModels.create(LOG), undefined);

/** The share of such moments at which it dies. */
const KILLED = 1 / 800;
/** The share of operations in which it is suspended at each such moment, and for how long at most. */
const SLOW = 1 / 3;
const MAX_SUSPENDED_MS = 25;

/** What may happen to an operation while others go on. */
const EXPECTED = new Set(['read_models_busy', 'read_models_unavailable', 'read_model_set_removed']);

interface Process {
  readonly readModels: ReadModels;
  readonly random: () => number;
  readonly tell: (deed: Deed) => void;
  /** May suspend the process again and again during this work. */
  readonly slowly: <T>(work: () => Promise<T>) => Promise<T>;
}

const positionOf = ({ to }: LiveSet['control']): number => Number(to?.position ?? 0);

const look = async ({ readModels, tell, slowly }: Process): Promise<LiveSet & { readonly began: number }> => {
  const began = sharedMs();
  const live = await slowly(() => readModels.live());
  if (live === undefined) {
    tell({ type: 'failed', why: 'The root leads nowhere.' });
    throw new Error('There is no chain any more.');
  }
  tell({ type: 'looked', began, ended: sharedMs(), set: live.set.id, to: positionOf(live.control) });
  return { ...live, began };
};

const isGone = (error: unknown): boolean => /unable to open|no such table/.test(messageOf(error));

/** Until the grace period is over, a set can be read, and shows what its control state said. */
const read = async (process: Process): Promise<void> => {
  const { set, control, began } = await look(process);
  await pause((process.random() * CHAIN.graceMs) / 2);
  const document = await set.get(TENANT, COUNT.collection, COUNT.key).catch((error: unknown) => {
    if (isGone(error)) return undefined;
    throw error;
  });
  const isInTime = sharedMs() - began < CHAIN.graceMs;
  if (isInTime && Number(document?.['count'] ?? 0) < positionOf(control))
    process.tell({ type: 'failed', why: `${set.id} shows less than it says.` });
};

const project = async (process: Process): Promise<void> => {
  const { set } = await look(process);
  let done = { n: 0, to: 0, isWhole: false };
  const work = async (now: LiveSet['control']): Promise<Commit> => {
    const [document] = await set.load([COUNT]);
    const count = Number(document?.['count'] ?? 0);
    done = { n: now.n + 1, to: count + 1, isWhole: count === positionOf(now) };
    return advanceTo(count + 1);
  };
  const outcome = await process.slowly(() => set.advance(work));
  if (outcome !== 'done') return;
  if (!done.isWhole) process.tell({ type: 'failed', why: `${set.id} had documents of another position.` });
  process.tell({ type: 'advanced', ended: sharedMs(), set: set.id, n: done.n, to: done.to });
};

const advanceTo = (count: number): Commit => ({
  to: at(count),
  writes: [put(TENANT, COUNT.collection, COUNT.key, { count })],
  parked: 0,
});

const build = async (process: Process): Promise<void> => {
  const { readModels, random, tell, slowly } = process;
  const built: ReadModelSet = await readModels.create(LOG);
  for (let attempt = 0; attempt < 8; attempt += 1) {
    const { set, control } = await look(process);
    if (!(await built.renew())) return;
    const to = positionOf(control);
    if (to > 0 && (await built.advance(async () => advanceTo(to))) !== 'done') return;
    await pause(random() * 2 * CHAIN.graceMs);
    if (await slowly(() => readModels.succeed(built, set)))
      return tell({ type: 'succeeded', former: set.id, built: built.id });
  }
};

const remove = async ({ readModels, random, tell, slowly }: Process): Promise<void> => {
  const others = (await readModels.list()).filter(({ isLive }) => !isLive);
  const builds = others.filter(({ control }) => control.next === undefined);
  const among = random() < 0.5 && builds.length > 0 ? builds : others;
  const goes = among[Math.floor(random() * among.length)];
  if (goes !== undefined && (await slowly(() => readModels.remove(goes.id))))
    tell({ type: 'removed', set: goes.id });
};

const takeOver = async ({ readModels }: Process): Promise<void> => void (await readModels.lease?.hold());

const OPERATIONS = [read, project, project, build, build, remove, remove, remove, takeOver];

const opened = async ({ store, place }: ChainOptions, disturb: () => void): Promise<ReadModels> => {
  if (store === 'sqlite') {
    hookSqlite(disturb);
    const { sqliteReadModels } =
      require('../../src/read-models/sqlite/sqlite-read-models') as typeof import('../../src/read-models/sqlite/sqlite-read-models');
    return sqliteReadModels({ ...CHAIN, folder: place });
  }
  const { write } = Socket.prototype;
  Socket.prototype.write = function (this: Socket, ...given: unknown[]): boolean {
    disturb();
    const isWritten = Reflect.apply(write, this, given) as boolean;
    disturb();
    return isWritten;
  };
  const { mongoConnection } =
    require('../../src/mongodb/connection') as typeof import('../../src/mongodb/connection');
  const { mongodbReadModels } =
    require('../../src/read-models/mongodb/mongodb-read-models') as typeof import('../../src/read-models/mongodb/mongodb-read-models');
  const connection = await mongoConnection(place, { waitMs: 10_000, onError: () => undefined });
  return mongodbReadModels(connection, { ...CHAIN, leaseMs: 300 });
};

const run = async (options: ChainOptions): Promise<void> => {
  const random = randomFrom(options.seed);
  const unsignalled = new Int32Array(new SharedArrayBuffer(4));
  let isSlow = false;
  const disturb = (): void => {
    if (random() < KILLED) process.kill(process.pid, 'SIGKILL');
    if (isSlow) Atomics.wait(unsignalled, 0, 0, random() * MAX_SUSPENDED_MS);
  };
  const slowly: Process['slowly'] = async (work) => {
    isSlow = random() < SLOW;
    return work().finally(() => (isSlow = false));
  };
  const tell = (deed: Deed): void => record(options.history, deed);
  const readModels = await opened(options, disturb);
  for (;;) {
    const operation = OPERATIONS[Math.floor(random() * OPERATIONS.length)] as (typeof OPERATIONS)[number];
    try {
      await operation({ readModels, random, tell, slowly });
    } catch (error) {
      if (EXPECTED.has(codeOf(error) ?? '')) continue;
      tell({ type: 'failed', why: `${operation.name}: ${messageOf(error)}` });
      process.exit(1);
    }
  }
};

if (require.main === module) {
  process.on('disconnect', () => process.exit());
  void run(JSON.parse(process.argv[2] ?? '') as ChainOptions);
}
