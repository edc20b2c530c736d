import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pause } from '../../src/async/clock';
import { mongodbReadModels } from '../../src/read-models/mongodb/mongodb-read-models';
import type { ReadModels, ReadModelSet } from '../../src/read-models/read-models';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { failuresIn, ofType, recordedIn } from '../read-models/chain-history';
import { chainLog, hasRows, positionOf, TENANTS, totalAfter, totalOf } from '../read-models/chain-log';
import { beginChain, CHAIN, type ChainOptions } from '../read-models/chain-process';
import { closeAfterwards } from '../support/closing';
import { freshFolder } from '../support/folders';
import { connectMongodb } from '../support/mongodb-under-test';
import { describeMongodb, mongodbUrl } from '../support/mongodb/databases';
import { seed, seeded } from '../support/property';
import { until } from '../support/waiting';

const PROCESS = join(__dirname, '..', 'read-models', 'chain-process.js');
const PROCESSES = 5;
const RUN_MS = 5_000;
/** At least so many kills and deeds of each kind: a busy machine takes longer. */
const ENOUGH = 4;
/** Longer than a superseded set stays. */
const SUSPENDED_MS = 3 * CHAIN.graceMs;

type Place = Omit<ChainOptions, 'seed' | 'history' | 'log'>;

/** Whether there is enough of everything, or a failure. */
const isOverIn = (history: string, kills: number): boolean => {
  const deeds = recordedIn(history);
  const types = ['saw', 'shown', 'followed', 'parked', 'freed', 'succeeded', 'removed'] as const;
  const counts = types.map((type) => ofType(deeds, type).length);
  return ofType(deeds, 'failed').length > 0 || Math.min(kills, ...counts) >= ENOUGH;
};

/** Suspends one process after the other, wherever it is. */
const suspendSome = async (running: ReadonlySet<ChildProcess>, isOver: () => boolean): Promise<void> => {
  for (let i = 0; !isOver(); i += 1) {
    await pause(SUSPENDED_MS);
    const child = [...running][i % PROCESSES];
    child?.kill('SIGSTOP');
    await pause(SUSPENDED_MS);
    child?.kill('SIGCONT');
  }
};

const runProcesses = async (options: Omit<ChainOptions, 'seed'>): Promise<void> => {
  const running = new Set<ChildProcess>();
  let [isOver, started, kills] = [false, 0, 0];
  const keepRunning = async (): Promise<void> => {
    while (!isOver) {
      const given = JSON.stringify({ ...options, seed: seed + (started += 1) } satisfies ChainOptions);
      const child = fork(PROCESS, [given], { execArgv: [] });
      running.add(child);
      await once(child, 'exit');
      running.delete(child);
      if (!isOver) kills += 1;
    }
  };
  const suspending = suspendSome(running, () => isOver);
  const all = Promise.all([suspending, ...Array.from({ length: PROCESSES }, keepRunning)]);
  await pause(RUN_MS);
  await until(() => isOverIn(options.history, kills), 10 * RUN_MS).finally(() => {
    isOver = true;
    for (const child of running) child.kill('SIGKILL');
  });
  await all;
};

/** Every tenant shows what was acknowledged, each event once, and in its place. */
const checkTenants = async (set: ReadModelSet, history: string, folder: string): Promise<void> => {
  const shown = ofType(recordedIn(history), 'shown');
  const [events, progress] = [chainLog(folder).read(), await set.progress(TENANTS)];
  const rows = await set.scan('rows', 100_000);
  for (const [i, tenantId] of TENANTS.entries()) {
    const position = positionOf(progress[i]);
    const acknowledged = shown.filter((one) => one.tenantId === tenantId).map((one) => one.position);
    expect(position).toBeGreaterThanOrEqual(Math.max(0, ...acknowledged));
    const own = events.filter((event) => event.tenantId === tenantId && event.position <= position);
    const positions = own.map((event) => event.position);
    const { collection, key } = totalOf(tenantId);
    expect(await set.get(tenantId, collection, key)).toEqual(totalAfter(undefined, own));
    const numbered = rows
      .filter((row) => row.tenantId === tenantId)
      .map((row) => [Number(row.key), (JSON.parse(row.text) as { number: number }).number]);
    expect(numbered.toSorted(([a = 0], [b = 0]) => a - b)).toEqual(
      hasRows(tenantId) ? positions.map((one, at) => [one, at + 1]) : [],
    );
  }
  expect((await set.control()).marks).toBe(progress.filter((one) => one?.parked !== undefined).length);
};

/** Whatever was done to it, the chain is a line that ends at the one live set, which has all that was acknowledged. */
const checkChain = async (readModels: ReadModels, history: string, folder: string): Promise<void> => {
  const deeds = recordedIn(history);
  expect(failuresIn(deeds)).toEqual([]);
  const live = await readModels.live();
  await checkTenants(live?.set as ReadModelSet, history, folder);
  const sets = await readModels.list();
  const named = new Set([
    ...ofType(deeds, 'looked').map(({ set }) => set),
    ...ofType(deeds, 'succeeded').map(({ built }) => built),
    ...sets.map(({ control }) => control.next),
  ]);
  const ends = sets.filter(
    ({ id, control }) => named.has(id) && control.next === undefined && control.removed !== true,
  );
  expect(ends.map(({ id }) => id)).toEqual([live?.set.id]);
};

const survives = async (place: Place, readModels: ReadModels): Promise<void> => {
  const folder = freshFolder();
  const history = join(folder, 'history');
  writeFileSync(history, '');
  for (const tenantId of TENANTS) chainLog(folder).append(tenantId);
  expect(await beginChain(readModels)).toBe(true);
  await runProcesses({ ...place, log: folder, history });
  await checkChain(readModels, history, folder);
};

describe('a chain of sets whose processes are killed and suspended inside their operations', () => {
  it(seeded('keeps its promises in SQLite'), async () => {
    const folder = freshFolder();
    const readModels = sqliteReadModels({ ...CHAIN, folder });
    closeAfterwards(readModels.close);
    await survives({ store: 'sqlite', place: folder }, readModels);
  });
});

describeMongodb('a chain of sets whose processes are killed and suspended inside their operations', () => {
  it(seeded('keeps its promises in MongoDB'), async () => {
    const url = mongodbUrl();
    const connection = await connectMongodb(url);
    const readModels = await mongodbReadModels(connection, CHAIN);
    closeAfterwards(readModels.close);
    // What the killed ones have begun would keep the database from being dropped.
    closeAfterwards(() => connection.db.admin().command({ killAllSessions: [] }));
    await survives({ store: 'mongodb', place: url }, readModels);
  });
});
