import { Socket } from 'node:net';
import { pause } from '../../src/async/clock';
import { codeOf, messageOf } from '../../src/fault';
import type {
  LiveSet,
  Progress,
  ReadModels,
  ReadModelSet,
  TenantCommit,
} from '../../src/read-models/read-models';
import { TIMES } from '../../src/times';
import { hookSqlite } from '../support/hooked-sqlite';
import { randomFrom } from '../support/random';
import { record, sharedMs, type Deed } from './chain-history';
import {
  chainLog,
  COLLECTIONS,
  commitOf,
  headAt,
  positionOf,
  TENANTS,
  totalAfter,
  totalOf,
  type ChainEvent,
  type ChainLog,
} from './chain-log';

/**
 * A process that does this and that with a chain of sets, one after the other, until it kills itself: before any
 * statement, or before or after anything that it sends. At such moments it may also be suspended, so that others overtake.
 */
export interface ChainOptions {
  readonly store: 'sqlite' | 'mongodb';
  /** A folder, or the URL of a database. */
  readonly place: string;
  /** The folder of the log. */
  readonly log: string;
  readonly history: string;
  readonly seed: number;
}

export const CHAIN = { version: 'v1', collections: COLLECTIONS, graceMs: 60 } as const;
const LOG = 'some log';

/** A chain of one set. */
export const beginChain = async (readModels: ReadModels): Promise<boolean> =>
  readModels.succeed(await readModels.create(LOG), undefined);

/** The share of such moments at which it dies. */
const KILLED = 1 / 4_000;
/** The share of operations in which it is suspended at each such moment, and for how long at most. */
const SLOW = 1 / 15;
const MAX_SUSPENDED_MS = 300;
/** Others go on between what somebody has read and what it does. */
const MAX_BETWEEN_MS = 30;
const BAD = 1 / 6;

/** Whoever is suspended is taken for dead, and the dead keep nobody waiting for long. */
const SHORT_TIMES = { conflictMs: 500, silentMs: 200 };

/** What may happen to an operation while others go on. */
const EXPECTED = new Set(['read_models_busy', 'read_models_unavailable', 'read_model_set_removed']);

interface Process {
  readonly readModels: ReadModels;
  readonly log: ChainLog;
  readonly random: () => number;
  readonly pick: <T>(among: readonly T[]) => T;
  readonly tell: (deed: Deed) => void;
  /** May suspend the process again and again during this work. */
  readonly slowly: <T>(work: () => Promise<T>) => Promise<T>;
}

const look = async ({ readModels, tell, slowly }: Process): Promise<LiveSet & { readonly began: number }> => {
  const began = sharedMs();
  const live = await slowly(() => readModels.live());
  if (live === undefined) {
    tell({ type: 'failed', why: 'The root leads nowhere.' });
    throw new Error('There is no chain any more.');
  }
  tell({ type: 'looked', began, ended: sharedMs(), set: live.set.id });
  return { ...live, began };
};

interface Asked {
  readonly tenantIds: readonly string[];
  readonly upTo: number;
  readonly movesTo?: boolean;
  /** Applies what waits behind an event that was mended, as many as this in one commit. */
  readonly frees?: number;
  readonly isBuild?: boolean;
}

const tellDone = (
  { tell }: Process,
  set: string,
  before: Progress | undefined,
  commit: TenantCommit,
): void => {
  const { tenantId, progress } = commit;
  tell({ type: 'shown', ended: sharedMs(), tenantId, position: positionOf(progress) });
  if (before?.parked === undefined && progress.parked !== undefined) tell({ type: 'parked', set });
  if (before?.parked !== undefined && progress.parked === undefined) tell({ type: 'freed', set });
};

/** Commits the next events of some tenants. False: not all of them were committed. */
const project = async (process: Process, set: ReadModelSet, asked: Asked): Promise<boolean> => {
  const { tenantIds, upTo, movesTo = false, frees = 0, isBuild = false } = asked;
  const found = await set.progress(tenantIds);
  const before = new Map(tenantIds.map((tenantId, i) => [tenantId, found[i]]));
  const [mended, events] = [process.log.mended(), process.log.read().slice(0, upTo)];
  const commits = new Map<string, TenantCommit>();
  const misread = new Set<string>();
  const dueOf = (tenantId: string): readonly ChainEvent[] => {
    const progress = before.get(tenantId);
    const isWaiting =
      progress?.parked !== undefined && !(frees > 0 && mended.has(positionOf(progress.parked)));
    const isDue = (event: ChainEvent) => event.tenantId === tenantId && event.position > positionOf(progress);
    return isWaiting ? [] : events.filter(isDue);
  };
  const work = async (unmoved: readonly string[]): Promise<readonly TenantCommit[]> => {
    const totals = await set.load(unmoved.map(totalOf));
    commits.clear();
    misread.clear();
    for (const [i, tenantId] of unmoved.entries()) {
      const [known, total, due] = [before.get(tenantId), totals[i], dueOf(tenantId)];
      if (positionOf(total) !== positionOf(known)) misread.add(tenantId);
      const some = due.slice(0, known?.parked === undefined ? undefined : frees);
      const read = { mended, readUpTo: upTo, isRest: some.length === due.length };
      if (due.length > 0) commits.set(tenantId, commitOf({ before: known, total }, some, read));
    }
    return [...commits.values()];
  };
  if (!isBuild && process.random() < 0.3) await pause(process.random() * MAX_BETWEEN_MS);
  const advanced = await process.slowly(() => set.advance(before, work, movesTo ? headAt(upTo) : undefined));
  if (advanced === 'superseded') return false;
  const done = [...commits.values()].filter(({ tenantId }) => advanced.get(tenantId) === 'done');
  for (const { tenantId } of done)
    if (misread.has(tenantId))
      process.tell({ type: 'failed', why: `${set.id} had documents of ${tenantId} of another position.` });
  if (!isBuild) for (const commit of done) tellDone(process, set.id, before.get(commit.tenantId), commit);
  return [...advanced.values()].every((outcome) => outcome === 'done');
};

/** Appends, projects its tenant and perhaps others, and looks whether it is shown. */
const write = async (process: Process): Promise<void> => {
  const { log, random, pick, tell } = process;
  const tenantId = pick(TENANTS);
  const position = log.append(tenantId, random() < BAD);
  for (let tries = 0; tries < 5; tries += 1) {
    const { set } = await look(process);
    const tenantIds = [tenantId, ...TENANTS.filter((other) => other !== tenantId && random() < 0.3)];
    if (await project(process, set, { tenantIds, upTo: position })) return;
    const [progress] = await set.progress([tenantId]);
    const isShown = positionOf(progress) >= position && (await set.control()).next === undefined;
    if (isShown) return tell({ type: 'shown', ended: sharedMs(), tenantId, position });
  }
};

const report = async ({ log, pick, random }: Process): Promise<void> =>
  void log.append(pick(TENANTS), random() < BAD);

const follow = async (process: Process): Promise<void> => {
  const { set, control } = await look(process);
  const to = positionOf(control.to);
  const next = process.log.read().slice(to, to + 1 + Math.floor(process.random() * 12));
  const tenantIds = [...new Set(next.map(({ tenantId }) => tenantId))];
  const asked = { tenantIds, upTo: to + next.length, movesTo: true };
  if (next.length > 0 && (await project(process, set, asked)))
    process.tell({ type: 'followed', set: set.id });
};

/** Everything up to `to` is applied, or waits behind a mark that is counted. */
const audit = async ({ log, tell, ...process }: Process): Promise<void> => {
  const { set } = await look({ log, tell, ...process });
  const before = await set.progress(TENANTS);
  const { to, marks } = await set.control();
  const after = await set.progress(TENANTS);
  // Nothing was removed before this.
  await set.control();
  const events = log.read().slice(0, positionOf(to));
  for (const [i, tenantId] of TENANTS.entries()) {
    const due = events.findLast((event) => event.tenantId === tenantId);
    if (after[i]?.parked === undefined && positionOf(after[i]) < positionOf(due))
      tell({ type: 'failed', why: `"to" of ${set.id} is ${positionOf(to)}, but ${tenantId} is behind.` });
  }
  const kept = after.filter(
    (one, i) => one?.parked !== undefined && one.parked.since === before[i]?.parked?.since,
  );
  if (marks < kept.length) tell({ type: 'failed', why: `${set.id} parks tenants without a mark.` });
};

const free = async (process: Process): Promise<void> => {
  const { set } = await look(process);
  const parked = await set.parked(TENANTS.length);
  if (parked.length === 0) return;
  const { tenant_id: tenantId, position } = process.pick(parked);
  process.log.mend(Number(position));
  const upTo = Math.max(positionOf((await set.control()).to), Number(position));
  await pause(process.random() * 2 * MAX_BETWEEN_MS);
  await project(process, set, { tenantIds: [tenantId], upTo, frees: process.pick([1, 2, 5, 100]) });
  await audit(process);
};

const isGone = (error: unknown): boolean => /unable to open|no such table/.test(messageOf(error));

/** Until the grace period is over, a set can be read. */
const read = async ({ log, tell, ...process }: Process): Promise<void> => {
  const { set, began } = await look({ log, tell, ...process });
  await pause((process.random() * CHAIN.graceMs) / 2);
  for (const tenantId of TENANTS) {
    const { collection, key } = totalOf(tenantId);
    const total = await set.get(tenantId, collection, key).catch((error: unknown) => {
      if (isGone(error)) return undefined;
      throw error;
    });
    if (sharedMs() - began >= CHAIN.graceMs) return;
    const position = positionOf(total);
    tell({ type: 'saw', began, ended: sharedMs(), set: set.id, tenantId, position });
    const own = log.read().filter((event) => event.tenantId === tenantId && event.position <= position);
    const right = totalAfter(undefined, own);
    if (position > 0 && JSON.stringify(total) !== JSON.stringify(right))
      tell({ type: 'failed', why: `${set.id} has skipped or repeated events of ${tenantId}.` });
  }
};

const REFUSED = new Error('The successor would park a tenant that is shown.');

/** A successor never shows less of a tenant. */
const refuseToHide = async (built: ReadModelSet, former: ReadModelSet): Promise<void> => {
  const [mine, theirs] = [await built.progress(TENANTS), await former.progress(TENANTS)];
  const isHidden = (one: Progress | undefined, i: number): boolean =>
    one?.parked !== undefined && positionOf(one) < positionOf(theirs[i]);
  if (mine.some(isHidden)) throw REFUSED;
};

const build = async (process: Process): Promise<void> => {
  const { readModels, log, random, tell, slowly } = process;
  const built: ReadModelSet = await readModels.create(LOG);
  const followTo = (upTo: number): Promise<boolean> =>
    project(process, built, { tenantIds: TENANTS, upTo, movesTo: true, frees: Infinity, isBuild: true });
  for (let attempt = 0; attempt < 8; attempt += 1) {
    const { set } = await look(process);
    if (!(await built.renew()) || !(await followTo(log.read().length))) return;
    if (attempt === 0) await built.finish();
    await pause(random() * CHAIN.graceMs);
    const keepUp = async (furthest: string | undefined): Promise<void> => {
      const to = positionOf((await built.control()).to);
      await followTo(Math.max(to, Number(furthest ?? 0)));
      await refuseToHide(built, set);
    };
    const naming = slowly(() => readModels.succeed(built, set, { follow: keepUp }));
    const isNamed = await naming.catch((error: unknown) => {
      if (error !== REFUSED) throw error;
      return false;
    });
    if (!isNamed) continue;
    tell({ type: 'succeeded', former: set.id, built: built.id });
    return read(process);
  }
};

const remove = async ({ readModels, random, pick, tell, slowly }: Process): Promise<void> => {
  const others = (await readModels.list()).filter(({ isLive }) => !isLive);
  const builds = others.filter(({ control }) => control.next === undefined);
  const among = random() < 0.5 && builds.length > 0 ? builds : others;
  if (among.length === 0) return;
  const { id } = pick(among);
  if (await slowly(() => readModels.remove(id))) tell({ type: 'removed', set: id });
};

const OPERATIONS = [
  [write, write, write, write, write, write, report, report, report],
  [follow, follow, follow, follow, follow, free, free, free],
  [read, read, read, audit, audit, build, remove, remove],
].flat();

const opened = async ({ store, place }: ChainOptions, disturb: () => void): Promise<ReadModels> => {
  if (store === 'sqlite') {
    hookSqlite(disturb);
    const { sqliteReadModels } =
      require('../../src/read-models/sqlite/sqlite-read-models') as typeof import('../../src/read-models/sqlite/sqlite-read-models');
    return sqliteReadModels({ ...CHAIN, folder: place });
  }
  Object.assign(TIMES, SHORT_TIMES);
  const { write: send } = Socket.prototype;
  Socket.prototype.write = function (this: Socket, ...given: unknown[]): boolean {
    disturb();
    const isWritten = Reflect.apply(send, this, given) as boolean;
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
    if (isSlow) Atomics.wait(unsignalled, 0, 0, random() ** 8 * MAX_SUSPENDED_MS);
  };
  const slowly: Process['slowly'] = async (work) => {
    isSlow = random() < SLOW;
    return work().finally(() => (isSlow = false));
  };
  const pick: Process['pick'] = (among) => among[Math.floor(random() * among.length)] as never;
  const tell = (deed: Deed): void => record(options.history, deed);
  const readModels = await opened(options, disturb);
  const log = chainLog(options.log);
  for (;;) {
    const operation = pick(OPERATIONS);
    try {
      await operation({ readModels, log, random, pick, tell, slowly });
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
