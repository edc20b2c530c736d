import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pause } from '../../src/async/clock';
import { mongodbReadModels } from '../../src/read-models/mongodb/mongodb-read-models';
import type { ReadModels } from '../../src/read-models/read-models';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { failuresIn, ofType, recordedIn } from '../read-models/chain-history';
import { beginChain, CHAIN, COUNT, type ChainOptions } from '../read-models/chain-process';
import { closeAfterwards } from '../support/closing';
import { freshFolder } from '../support/folders';
import { connectMongodb } from '../support/mongodb-under-test';
import { describeMongodb, mongodbUrl } from '../support/mongodb/databases';
import { seed, seeded } from '../support/property';
import { until } from '../support/waiting';

const PROCESS = join(__dirname, '..', 'read-models', 'chain-process.js');
const PROCESSES = 5;
const RUN_MS = 5_000;
/** At least so many kills, commits, switches and removals: a busy machine takes longer. */
const ENOUGH = 4;

type Place = Omit<ChainOptions, 'seed' | 'history'>;

/** Whether there is enough of everything, or a failure. */
const isOverIn = (history: string, kills: number): boolean => {
  const deeds = recordedIn(history);
  const counts = (['advanced', 'succeeded', 'removed'] as const).map((type) => ofType(deeds, type).length);
  return ofType(deeds, 'failed').length > 0 || Math.min(kills, ...counts) >= ENOUGH;
};

/** Replaces each process that has killed itself until the time is up and this many have, and then kills all. */
const runProcesses = async (
  options: Omit<ChainOptions, 'seed'>,
  onKilled: () => Promise<unknown>,
): Promise<void> => {
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
      await onKilled();
    }
  };
  const all = Promise.all(Array.from({ length: PROCESSES }, keepRunning));
  await pause(RUN_MS);
  await until(() => isOverIn(options.history, kills), 10 * RUN_MS).finally(() => {
    isOver = true;
    for (const child of running) child.kill('SIGKILL');
  });
  await all;
};

/** Whatever was done to it, the chain is a line that ends at the one live set, which has all that was acknowledged. */
const checkChain = async (readModels: ReadModels, history: string): Promise<void> => {
  const deeds = recordedIn(history);
  expect(failuresIn(deeds)).toEqual([]);
  const live = await readModels.live();
  const position = Number(live?.control.to?.position);
  const acknowledged = Math.max(...ofType(deeds, 'advanced').map(({ to }) => to));
  expect(position).toBeGreaterThanOrEqual(acknowledged);
  expect(await live?.set.get(COUNT.tenantId, COUNT.collection, COUNT.key)).toEqual({ count: position });
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

const survives = async (
  place: Place,
  readModels: ReadModels,
  onKilled: () => Promise<unknown> = async () => undefined,
): Promise<void> => {
  const history = join(freshFolder(), 'history');
  expect(await beginChain(readModels)).toBe(true);
  await runProcesses({ ...place, history }, onKilled);
  await checkChain(readModels, history);
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
    // What whoever takes over the lease does to its former holder, here to whoever was killed.
    const endSessions = () => connection.db.admin().command({ killAllSessions: [] });
    await survives({ store: 'mongodb', place: url }, readModels, endSessions);
  });
});
