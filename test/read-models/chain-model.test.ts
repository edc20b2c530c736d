import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ReadModels, ReadModelSet } from '../../src/read-models/read-models';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { seed, seeded } from '../support/property';
import { simulate, type World } from './chain-model';
import { COLLECTIONS } from './contract/storage';
import { letGoOfAll, memoryReadModels, memoryStore, type Mistake } from './memory-read-models';

const STEPS = 1_500;
const RUNS = 500;
const RUNS_IN_SQLITE = 6;
const STEPS_IN_SQLITE = 600;

/** Each of these was found within 140 runs. */
const RUNS_UNTIL_NOTICED = 1_000;

/** The world of one run in memory, perhaps with a mistake. */
const memoryWorld = (mistake?: Mistake): World => {
  const store = memoryStore();
  const named = new Set<string>();
  const recordNamed = (): void => {
    for (const root of store.roots.values()) named.add(root);
    for (const { control } of store.sets.values()) if (control.next !== undefined) named.add(control.next);
  };
  return {
    open: (process) => {
      const between = (): Promise<void> => {
        recordNamed();
        return process.between();
      };
      return memoryReadModels({
        ...process,
        between,
        collections: COLLECTIONS,
        store,
        holder: process,
        mistake,
      });
    },
    killed: (process) => letGoOfAll(store, process),
    ends: () => {
      const sets = [...store.sets].filter(([id]) => named.has(id));
      return sets
        .filter(([, { control }]) => control.next === undefined && control.removed !== true)
        .map(([id]) => id);
    },
  };
};

describe('the chain of sets', () => {
  it(seeded('shows what was shown, and leads to one live set, whoever is killed or suspended'), async () => {
    let [switches, removals, answered] = [0, 0, 0];
    for (let i = 0; i < RUNS; i += 1) {
      const outcome = await simulate(seed + i, memoryWorld(), { steps: STEPS });
      expect(outcome.failure).toBeUndefined();
      switches += outcome.switches;
      removals += outcome.removals;
      answered += outcome.answered;
    }
    expect(switches).toBeGreaterThan(2 * RUNS);
    expect(removals).toBeGreaterThan(5 * RUNS);
    expect(answered).toBeGreaterThan(5 * RUNS);
  });

  it.each(['pointer', 'late', 'thaw', 'joined', 'root', 'eager', 'unmarked', 'early', 'loose'] as const)(
    'is broken by the mistake "%s"',
    async (mistake) => {
      const inStore = mistake === 'joined' || mistake === 'eager' ? undefined : mistake;
      const model = { steps: STEPS, joinsLate: mistake === 'joined', isEager: mistake === 'eager' };
      for (let i = 1; i <= RUNS_UNTIL_NOTICED; i += 1)
        if ((await simulate(i, memoryWorld(inStore), model)).failure !== undefined) return;
      throw new Error(`The mistake "${mistake}" was not noticed.`);
    },
  );
});

/** Lets others run before every operation. */
const pausing = (readModels: ReadModels, between: () => Promise<void>): ReadModels => {
  const pausingSet = (set: ReadModelSet): ReadModelSet => ({
    ...set,
    advance: (work) => between().then(() => set.advance(work)),
    renew: () => between().then(() => set.renew()),
  });
  return {
    ...readModels,
    live: async () => {
      await between();
      const live = await readModels.live();
      return live === undefined ? undefined : { ...live, set: pausingSet(live.set) };
    },
    create: (log) => between().then(async () => pausingSet(await readModels.create(log))),
    succeed: (...sets) => between().then(() => readModels.succeed(...sets)),
    list: () => between().then(() => readModels.list()),
    remove: (id) => between().then(() => readModels.remove(id)),
  };
};

describe('the chain of sets in SQLite', () => {
  let folder: string;
  const opened: ReadModels[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'chain-'));
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((readModels) => readModels.close()));
    rmSync(folder, { recursive: true });
  });

  it(seeded('keeps the same promises'), async () => {
    let all = 0;
    for (let i = 0; i < RUNS_IN_SQLITE; i += 1) {
      const within = join(folder, String(i));
      const open: World['open'] = ({ graceMs, between }) => {
        const readModels = sqliteReadModels({
          folder: within,
          version: 'v1',
          collections: COLLECTIONS,
          graceMs,
        });
        opened.push(readModels);
        return pausing(readModels, between);
      };
      const world: World = { open, killed: () => undefined, ends: () => [] };
      const model = { steps: STEPS_IN_SQLITE, now: Date.now, pausesInWork: false };
      const { failure, switches } = await simulate(seed + i, world, model);
      expect(failure).toBeUndefined();
      all += switches;
    }
    expect(all).toBeGreaterThan(0);
  });
});
