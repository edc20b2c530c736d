import { randomUUID } from 'node:crypto';
import { pause } from '../../src/async/clock';
import type { LiveGeneration } from '../../src/projecting/live-generations';
import type { Projecting } from '../../src/projecting/projecting';
import { prune, unusedGenerations } from '../../src/projecting/prune';
import {
  openActiveGenerations,
  STILL_READ_MS,
  type ActiveGenerations,
} from '../../src/projecting/active-generations';
import { damaged } from '../../src/read-models/damage';
import { generationName, generationRemoved, type GenerationId } from '../../src/read-models/read-models';
import { passTime } from '../support/pass-time';
import { seed, seeded } from '../support/property';
import { randomFrom } from '../support/random';
import { until } from '../support/waiting';
import { lineCollections, plainLines } from './lines';
import { liveOf } from '../support/generations';
import {
  lines,
  liveIn,
  numbersIn,
  projectInto,
  replayHarness,
  someTenants,
  type ReplayHarness,
} from './replay';
import {
  created,
  documentsOf,
  nth,
  numbered,
  openLog,
  openProcess,
  openReadModels,
  turn,
  updated,
} from './harness';

const LONG = 10_000;
const liveName = (projecting: Projecting): string =>
  numbered(generationName(projecting.live[0]!.generation.id));

/** As happens before every query. */
const upToDate = async (active: ActiveGenerations): Promise<void> => {
  if (!active.isUpToDate()) await active.refresh();
};

/** Another process on the same files. */
const openServer = async (harness: ReplayHarness) =>
  openProcess(await openLog(harness.log.folder), await openReadModels(harness.folder), [lines]);

const namesOf = (
  all: readonly { readonly generation: { readonly id: Parameters<typeof generationName>[0] } }[],
) => all.map(({ generation }) => numbered(generationName(generation.id))).toSorted();

describe('the active generations', () => {
  it('notice a switch by another process, and project both generations', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    await harness.catchUp();
    const active = await openActiveGenerations([lines], await openReadModels(harness.folder), harness.log);
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
    expect(namesOf(active.projected())).toEqual(['lines_v1_1']);
    await harness.rebuild();
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_2']);
    expect(namesOf(active.projected())).toEqual(['lines_v1_1', 'lines_v1_2']);
  });

  it('of which there are none yet are not up to date, and create nothing until they are provided', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    const active = await openActiveGenerations([lines], harness.readModels, harness.log);
    passTime(1_100);
    expect(active.isUpToDate()).toBe(false);
    expect(active.projected()).toEqual([]);
    await expect(active.refresh()).rejects.toThrow('has no live generation');
    const { reader } = active.live()[0]!.generation;
    await expect(reader.get(tenantId, 'heads', 'all')).rejects.toMatchObject({
      code: 'read_models_unavailable',
      message: expect.stringContaining('has not been built yet'),
    });
    expect(await numbersIn(harness.readModels)).toEqual([]);
    await active.provide();
    expect(active.isUpToDate()).toBe(true);
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
  });

  it('follow the first generation when another process creates it', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    const active = await openActiveGenerations([lines], harness.readModels, harness.log);
    await harness.catchUp();
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
  });

  it('are not read one by one while nothing has changed, if the store can tell', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    await harness.catchUp();
    const readModels = await openReadModels(harness.folder);
    let asked = 0;
    const state: typeof readModels.state = () => {
      asked += 1;
      return readModels.state();
    };
    const active = await openActiveGenerations([lines], { ...readModels, state }, harness.log);
    const opened = asked;
    await active.refresh();
    expect(asked - opened).toBe(readModels.stateToken === undefined ? 1 : 0);
    await harness.rebuild();
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_2']);
  });

  it.each([
    ['damaged', (id: GenerationId) => damaged(id, 'gone.')],
    ['removed', (id: GenerationId) => generationRemoved(id)],
  ])('leave a %s generation once the next one shows all that was in the log', async (_, errorOf) => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    await harness.catchUp();
    const readModels = await openReadModels(harness.folder);
    const open: typeof readModels.open = async (...dependencies) => {
      const generation = await readModels.open(...dependencies);
      if (generation.id.generation !== nth(1).generation) return generation;
      const control = async () => {
        if (isLost) throw errorOf(generation.id);
        return generation.control();
      };
      return { ...generation, control };
    };
    let isLost = false;
    const active = await openActiveGenerations([lines], { ...readModels, open }, harness.log);
    isLost = true;
    await harness.rebuild();
    await harness.record(tenantId, updated('late'));
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
    await projectInto(
      harness,
      active.projected().find(({ generation }) => generation.id.generation === nth(2).generation)!,
    );
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_2']);
  });

  it('stay on the previous generation until the next one shows as much', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    await harness.catchUp();
    const active = await openActiveGenerations([lines], harness.readModels, harness.log);
    await harness.rebuild();
    const former = await harness.readModels.open(nth(1), lines.collections);
    await harness.record(tenantId, updated('c'));
    const [first] = active.live();
    expect(first?.generation.id).toEqual(nth(1));
    const { n } = await former.control();
    const head = (await harness.log.head())!;
    await former.commit(n, { position: head.position, eventId: head.eventId }, []);
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
    expect(namesOf(active.projected())).toEqual(['lines_v1_1', 'lines_v1_2']);
    expect(active.shown().map(({ id }) => id.generation)).toEqual(
      [nth(1), nth(2)].map((id) => id.generation),
    );
    await harness.catchUp();
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_2']);
  });

  it('notice a switch that is made while they look at the registry', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    await harness.catchUp();
    const readModels = await openReadModels(harness.folder);
    let isSwitching = false;
    const state: typeof readModels.state = async () => {
      const found = await readModels.state();
      if (isSwitching) await harness.rebuild();
      isSwitching = false;
      return found;
    };
    const active = await openActiveGenerations([lines], { ...readModels, state }, harness.log);
    await readModels.requestRetry();
    isSwitching = true;
    await active.refresh();
    expect([isSwitching, ...namesOf(active.live())]).toEqual([false, 'lines_v1_1']);
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_2']);
  });

  it('are not up to date after a look that took too long', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    await harness.catchUp();
    const readModels = await openReadModels(harness.folder);
    let tookMs = 0;
    const state: typeof readModels.state = async () => {
      const found = await readModels.state();
      passTime(tookMs);
      return found;
    };
    const active = await openActiveGenerations([lines], { ...readModels, state }, harness.log);
    expect(active.isUpToDate()).toBe(true);
    await readModels.requestRetry();
    tookMs = 1_100;
    await active.refresh();
    expect(active.isUpToDate()).toBe(false);
  });

  it('do not go back in time when the current one moves on while it is compared with the next', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    await harness.catchUp();
    const readModels = await openReadModels(harness.folder);
    const former = await readModels.open(nth(1), lines.collections);
    let isMoving = true;
    const moveOn = async (): Promise<void> => {
      isMoving = false;
      await harness.record(tenantId, updated('c'));
      await former.commit((await former.control()).n, await harness.log.head(), []);
    };
    const open: typeof readModels.open = async (id, ...more) => {
      const generation = await readModels.open(id, ...more);
      if (id.generation === nth(1).generation) return generation;
      const applied = async () => {
        const position = await generation.reader.applied();
        if (isMoving) await moveOn();
        return position;
      };
      return { ...generation, reader: { ...generation.reader, applied } };
    };
    const active = await openActiveGenerations([lines], { ...readModels, open }, harness.log);
    await harness.rebuild();
    await active.refresh();
    expect([isMoving, ...namesOf(active.live())]).toEqual([false, 'lines_v1_1']);
    await harness.catchUp();
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_2']);
  });

  it('project everything that a write waits for, even after two switches at once', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    await harness.catchUp();
    const active = await openActiveGenerations([lines], await openReadModels(harness.folder), harness.log);
    await harness.rebuild();
    await harness.rebuild();
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_3']);
    const projected = namesOf(active.projected());
    for (const generation of active.shown())
      expect(projected).toContain(numbered(generationName(generation.id)));
    expect(projected).toContain('lines_v1_2');
  });
});

describe('a switch', () => {
  /** Two generations, both at the head; the second is live. */
  const withTwo = async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    await harness.catchUp();
    await harness.rebuild();
    const opened = async (number: number): Promise<LiveGeneration> => ({
      projector: lines,
      generation: await harness.readModels.open(nth(number), lines.collections),
    });
    /** Brings some of the generations to the head, and no others. */
    const project = async (...numbers: readonly number[]): Promise<void> => {
      for (const number of numbers) await projectInto(harness, await opened(number));
    };
    const switchTo = async (number: number): Promise<void> => {
      const before = await liveOf(harness.readModels, lines);
      expect(await harness.readModels.makeLive(nth(number), before)).toBe(true);
    };
    const write = () => harness.record(tenantId, updated('again'));
    return { harness, project, switchTo, write };
  };
  /** Nobody reads the generations that were live before. */
  const isLeft = async ({ readModels }: ReplayHarness): Promise<boolean> =>
    (await readModels.state()).generations.every(({ leftMs }) => (leftMs ?? Infinity) >= STILL_READ_MS);
  const elsewhere = async (harness: ReplayHarness) =>
    openActiveGenerations([lines], await openReadModels(harness.folder), harness.log);
  const appliedIn = async (active: ActiveGenerations): Promise<string> =>
    (await active.live()[0]?.generation.control())?.applied ?? '';

  it('made while a write waits is waited for as well', async () => {
    const { harness, project, switchTo, write } = await withTwo();
    await until(() => isLeft(harness));
    const writer = await openServer(harness);
    await switchTo(1);
    const position = await write();
    await project(2);
    expect(await writer.reached(position, 0)).toBe(false);
    await project(1);
    expect(await writer.reached(position, 0)).toBe(true);
  });

  it('made just before a process opened makes it wait for what others may still read', async () => {
    const { harness, project, switchTo, write } = await withTwo();
    await switchTo(1);
    await switchTo(2);
    const writer = await openServer(harness);
    const position = await write();
    await project(2);
    expect(await writer.reached(position, 0)).toBe(false);
    await project(1);
    expect(await writer.reached(position, 0)).toBe(true);
  });

  it('made long ago keeps nobody waiting', async () => {
    const { harness, project, write } = await withTwo();
    const writer = await openServer(harness);
    await until(() => isLeft(harness));
    const position = await write();
    await project(2);
    expect(await writer.reached(position, 0)).toBe(true);
  });

  it('is looked up before a query only by a process that has not looked for a while', async () => {
    const { harness, switchTo } = await withTwo();
    const active = await elsewhere(harness);
    expect(active.isUpToDate()).toBe(true);
    await switchTo(1);
    passTime(1_100);
    expect(namesOf(active.live())).toEqual(['lines_v1_2']);
    await upToDate(active);
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
    expect(active.isUpToDate()).toBe(true);
  });

  it('that could not be looked up leaves the reader as stale as before', async () => {
    const { harness, switchTo } = await withTwo();
    const readModels = await openReadModels(harness.folder);
    let isAway = false;
    const state: typeof readModels.state = async () => {
      if (isAway) throw new Error('The store is away.');
      return readModels.state();
    };
    const active = await openActiveGenerations([lines], { ...readModels, state }, harness.log);
    await switchTo(1);
    passTime(1_100);
    isAway = true;
    await expect(active.refresh()).rejects.toThrow('The store is away.');
    expect(active.isUpToDate()).toBe(false);
    isAway = false;
    await active.refresh();
    expect(active.isUpToDate()).toBe(true);
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
  });

  it('is followed query by query until the new generation shows as much', async () => {
    const { harness, project, switchTo, write } = await withTwo();
    const active = await elsewhere(harness);
    await write();
    await project(2);
    await switchTo(1);
    await active.refresh();
    await upToDate(active);
    expect(namesOf(active.live())).toEqual(['lines_v1_2']);
    await project(1);
    await upToDate(active);
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
  });

  it('superseded by another before it was followed: the generation that is ahead is read', async () => {
    const { harness, project, switchTo, write } = await withTwo();
    await harness.rebuild();
    const active = await elsewhere(harness);
    await write();
    await project(3);
    await switchTo(2);
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_3']);
    const position = await write();
    await project(2);
    await switchTo(1);
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_2']);
    expect(await appliedIn(active)).toBe(position);
  });

  it('made twice while a process was suspended: it reads a generation that shows everything the log had then', async () => {
    const { harness, project, switchTo, write } = await withTwo();
    await harness.rebuild();
    const active = await elsewhere(harness);
    await switchTo(2);
    const position = await write();
    await project(2);
    await switchTo(1);
    passTime(1_100);
    const shown = upToDate(active).then(() => appliedIn(active));
    await turn();
    await project(1);
    expect(await shown).toBe(position);
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
  });
});

describe('a projecting process', () => {
  it('follows two switches at once without keeping a write waiting', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    await harness.catchUp();
    const server = await openServer(harness);
    await harness.rebuild();
    await harness.rebuild();
    await server.start();
    await until(() => liveName(server) === 'lines_v1_3');
    expect(await server.reached(await harness.record(tenantId, updated('c')), 1_500)).toBe(true);
  });

  it(
    seeded('never shows an older state than before, whoever switches and writes'),
    async () => {
      const random = randomFrom(seed);
      const harness = await replayHarness();
      const tenantId = randomUUID();
      await harness.record(tenantId, created());
      const servers = [await openServer(harness), await openServer(harness)];
      for (const server of servers) await server.start();
      for (const server of servers)
        expect(await server.reached((await harness.log.head())!.position, LONG)).toBe(true);
      let done = false;
      const seen = servers.map(() => new Set<string>());
      const reading = servers.map(async (server, i) => {
        let last = '';
        let count = 0;
        for (; !done; await pause(3)) {
          const reader = server.reader('lines');
          const applied = (await reader.applied()) ?? '';
          const head = (await reader.get(tenantId, 'heads', 'all')) as { count: number } | undefined;
          expect(applied >= last).toBe(true);
          expect(head?.count ?? 0).toBeGreaterThanOrEqual(count);
          last = applied;
          count = head?.count ?? 0;
          seen[i]?.add(liveName(server));
        }
      });
      const writing = (async () => {
        for (; !done; await pause(3)) {
          const position = await harness.record(tenantId, updated('again'));
          const server = servers[Math.floor(random() * 2)] as Projecting;
          expect(await server.reached(position, LONG)).toBe(true);
          const head = await server.reader('lines').get(tenantId, 'heads', 'all');
          expect((head as unknown as { count: number }).count).toBe(harness.history.length);
        }
      })();
      const switching = (async () => {
        for (let i = 0; i < 12; i++) {
          const unused = await unusedGenerations(harness.readModels, [lines]);
          if (random() < 0.75 || unused.length === 0) await harness.rebuild();
          else await prune(harness.readModels, [lines], unused);
          if (random() < 0.5) continue;
          const live = await liveIn(harness.readModels);
          await until(() => servers.every((server) => liveName(server) === live));
        }
      })().finally(() => (done = true));
      await Promise.all([...reading, writing, switching]);
      for (const names of seen) expect(names.size).toBeGreaterThan(1);
      for (const server of servers) expect(server.warnings).toEqual([]);
      const { generation } = await harness.catchUp();
      expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(harness.history));
    },
    60_000,
  );
});
