import { randomUUID } from 'node:crypto';
import { monotonicMs, pause } from '../../src/clock';
import type { LiveGeneration } from '../../src/projecting/live-generations';
import type { Projecting } from '../../src/projecting/projecting';
import { prune, unusedGenerations } from '../../src/projecting/prune';
import { rollback } from '../../src/projecting/rebuild';
import {
  openActiveGenerations,
  STILL_READ_MS,
  type ActiveGenerations,
} from '../../src/projecting/active-generations';
import { damaged } from '../../src/read-models/damage';
import { generationName, generationRemoved, type GenerationId } from '../../src/read-models/read-models';
import { seed, seeded } from '../support/property';
import { until } from '../support/waiting';
import { lineCollections, plainLines } from './lines';
import { lines, projectInto, randomFrom, replayHarness, someTenants, type ReplayHarness } from './replay';
import { created, documentsOf, openLog, openProcess, openReadModels, turn, updated } from './harness';

const LONG = 10_000;
const liveName = (projecting: Projecting): string => generationName(projecting.live[0]!.generation.id);

/** As happens before every query. */
const upToDate = async (active: ActiveGenerations): Promise<void> => {
  if (!active.isUpToDate()) await active.refresh();
};

/** Another process on the same files. */
const openServer = async (harness: ReplayHarness) =>
  openProcess(await openLog(harness.log.folder), await openReadModels(harness.folder), [lines]);

const namesOf = (
  all: readonly { readonly generation: { readonly id: Parameters<typeof generationName>[0] } }[],
) => all.map(({ generation }) => generationName(generation.id)).toSorted();

describe('the active generations', () => {
  it('notice a switch and a rollback by another process, and project both generations', async () => {
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
    await rollback(harness.readModels, lines);
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
    expect(namesOf(active.projected())).toEqual(['lines_v1_1', 'lines_v1_2']);
  });

  it('are not read one by one while nothing has changed, if the store can tell', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    await harness.catchUp();
    const readModels = await openReadModels(harness.folder);
    let asked = 0;
    const pointer: typeof readModels.pointer = (...which) => {
      asked += 1;
      return readModels.pointer(...which);
    };
    const active = await openActiveGenerations([lines], { ...readModels, pointer }, harness.log);
    const opened = asked;
    await active.refresh();
    expect(asked - opened).toBe(readModels.pointersToken === undefined ? 1 : 0);
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
    const open: typeof readModels.open = async (...parts) => {
      const generation = await readModels.open(...parts);
      if (generation.id.generation > 1) return generation;
      const applied = async () => Promise.reject(errorOf(generation.id));
      return { ...generation, reader: { ...generation.reader, applied } };
    };
    const active = await openActiveGenerations([lines], { ...readModels, open }, harness.log);
    await harness.rebuild();
    await harness.record(tenantId, updated('late'));
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
    await projectInto(
      harness,
      active.projected().find(({ generation }) => generation.id.generation === 2)!,
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
    const id = { projection: 'lines', version: 1, generation: 1 };
    const former = await harness.readModels.open(id, lines.collections, await harness.log.identity());
    await harness.record(tenantId, updated('c'));
    const [first] = active.live();
    expect(first?.generation.id.generation).toBe(1);
    const { n } = await former.control();
    const head = (await harness.log.head())!;
    await former.commit(n, { position: head.position, eventId: head.eventId }, []);
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
    expect(namesOf(active.projected())).toEqual(['lines_v1_1', 'lines_v1_2']);
    expect(active.shown().map((generation) => generation.id.generation)).toEqual([1, 2]);
    await harness.catchUp();
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_2']);
  });

  it('notice a switch that is made while they look at the pointers', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    await harness.catchUp();
    const readModels = await openReadModels(harness.folder);
    let isSwitching = false;
    const liveLately: typeof readModels.liveLately = async (...which) => {
      const found = await readModels.liveLately(...which);
      if (isSwitching) await harness.rebuild();
      isSwitching = false;
      return found;
    };
    const active = await openActiveGenerations([lines], { ...readModels, liveLately }, harness.log);
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
    let lookMs = 0;
    const pointer: typeof readModels.pointer = async (...which) => {
      const found = await readModels.pointer(...which);
      await pause(lookMs);
      return found;
    };
    const active = await openActiveGenerations([lines], { ...readModels, pointer }, harness.log);
    expect(active.isUpToDate()).toBe(true);
    await readModels.requestRetry();
    lookMs = 1_100;
    await active.refresh();
    expect(active.isUpToDate()).toBe(false);
  });

  it('do not go back in time when the current one moves on while it is compared with the next', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    await harness.catchUp();
    const readModels = await openReadModels(harness.folder);
    const former = await readModels.open(
      { projection: 'lines', version: 1, generation: 1 },
      lines.collections,
      await harness.log.identity(),
    );
    let isMoving = true;
    const moveOn = async (): Promise<void> => {
      isMoving = false;
      await harness.record(tenantId, updated('c'));
      await former.commit((await former.control()).n, await harness.log.head(), []);
    };
    const open: typeof readModels.open = async (id, ...more) => {
      const generation = await readModels.open(id, ...more);
      if (id.generation === 1) return generation;
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
    for (const generation of active.shown()) expect(projected).toContain(generationName(generation.id));
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
    const numbered = async (generation: number): Promise<LiveGeneration> => {
      const id = { projection: 'lines', version: 1, generation };
      return {
        projector: lines,
        generation: await harness.readModels.open(id, lines.collections, await harness.log.identity()),
      };
    };
    /** Brings some of the generations to the head, and no others. */
    const project = async (...numbers: readonly number[]): Promise<void> => {
      for (const number of numbers) await projectInto(harness, await numbered(number));
    };
    const point = async (live: number, previous: number): Promise<void> => {
      const before = await harness.readModels.pointer('lines', 1);
      expect(await harness.readModels.point('lines', 1, { live, previous }, before)).toBe(true);
    };
    const write = () => harness.record(tenantId, updated('again'));
    return { harness, project, point, write };
  };
  const elsewhere = async (harness: ReplayHarness) =>
    openActiveGenerations([lines], await openReadModels(harness.folder), harness.log);
  const appliedIn = async (active: ActiveGenerations): Promise<string> =>
    (await active.live()[0]?.generation.control())?.applied ?? '';
  const passed = (ms: number): Promise<void> => {
    const end = monotonicMs() + ms;
    return until(() => monotonicMs() > end);
  };

  it('made while a write waits is waited for as well', async () => {
    const { harness, project, point, write } = await withTwo();
    await until(async () => (await harness.readModels.liveLately('lines', 1, STILL_READ_MS)).length === 0);
    const writer = await openServer(harness);
    await point(1, 2);
    const position = await write();
    await project(2);
    expect(await writer.reached(position, 0)).toBe(false);
    await project(1);
    expect(await writer.reached(position, 0)).toBe(true);
  });

  it('made just before a process opened makes it wait for what others may still read', async () => {
    const { harness, project, point, write } = await withTwo();
    await point(1, 2);
    await point(2, 1);
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
    await until(async () => (await harness.readModels.liveLately('lines', 1, STILL_READ_MS)).length === 0);
    const position = await write();
    await project(2);
    expect(await writer.reached(position, 0)).toBe(true);
  });

  it('is looked up before a query only by a process that has not looked for a while', async () => {
    const { harness, point } = await withTwo();
    const active = await elsewhere(harness);
    expect(active.isUpToDate()).toBe(true);
    await point(1, 2);
    await passed(1_100);
    expect(namesOf(active.live())).toEqual(['lines_v1_2']);
    await upToDate(active);
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
    expect(active.isUpToDate()).toBe(true);
  });

  it('that could not be looked up leaves the reader as stale as before', async () => {
    const { harness, point } = await withTwo();
    const readModels = await openReadModels(harness.folder);
    let isAway = false;
    const pointer: typeof readModels.pointer = async (...which) => {
      if (isAway) throw new Error('The store is away.');
      return readModels.pointer(...which);
    };
    const active = await openActiveGenerations([lines], { ...readModels, pointer }, harness.log);
    await point(1, 2);
    await passed(1_100);
    isAway = true;
    await expect(active.refresh()).rejects.toThrow('The store is away.');
    expect(active.isUpToDate()).toBe(false);
    isAway = false;
    await active.refresh();
    expect(active.isUpToDate()).toBe(true);
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
  });

  it('is followed query by query until the new generation shows as much', async () => {
    const { harness, project, point, write } = await withTwo();
    const active = await elsewhere(harness);
    await write();
    await project(2);
    await point(1, 2);
    await active.refresh();
    await upToDate(active);
    expect(namesOf(active.live())).toEqual(['lines_v1_2']);
    await project(1);
    await upToDate(active);
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
  });

  it('superseded by another before it was followed: the generation that is ahead is read', async () => {
    const { harness, project, point, write } = await withTwo();
    await harness.rebuild();
    const active = await elsewhere(harness);
    await write();
    await project(3);
    await point(2, 3);
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_3']);
    const position = await write();
    await project(2);
    await point(1, 2);
    await active.refresh();
    expect(namesOf(active.live())).toEqual(['lines_v1_2']);
    expect(await appliedIn(active)).toBe(position);
  });

  it('made twice while a process was suspended: it reads a generation that shows everything the log had then', async () => {
    const { harness, project, point, write } = await withTwo();
    await harness.rebuild();
    const active = await elsewhere(harness);
    await point(2, 3);
    const position = await write();
    await project(2);
    await point(1, 2);
    await passed(1_100);
    const shown = upToDate(active).then(() => appliedIn(active));
    await turn();
    await project(1);
    expect(await shown).toBe(position);
    expect(namesOf(active.live())).toEqual(['lines_v1_1']);
  });
});

describe('a projecting process', () => {
  it('also projects the generation before the live one, for a rollback', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    const server = await openServer(harness);
    await server.start();
    await until(async () => server.reached((await harness.log.head())!.position, 0));
    await harness.rebuild();
    await until(() => liveName(server) === 'lines_v1_2');
    const position = await harness.record(tenantId, updated('c'), updated('d'));
    expect(await server.reached(position, LONG)).toBe(true);
    await rollback(harness.readModels, lines);
    await until(() => liveName(server) === 'lines_v1_1');
    expect(await server.reached(position, LONG)).toBe(true);
    expect(await documentsOf(server.reader('lines'), lineCollections)).toEqual(plainLines(harness.history));
    expect(server.warnings).toEqual([]);
  });

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

  it('reads the new file when a generation number is reused after a prune', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    const server = await openServer(harness);
    await server.start();
    expect(await server.reached((await harness.log.head())!.position, LONG)).toBe(true);
    await harness.rebuild();
    await until(() => liveName(server) === 'lines_v1_2');
    await rollback(harness.readModels, lines);
    await until(() => liveName(server) === 'lines_v1_1');
    expect(
      await prune(harness.readModels, [lines], await unusedGenerations(harness.readModels, [lines])),
    ).toEqual(['lines_v1_2']);
    await harness.rebuild();
    const { live } = (await harness.readModels.pointer('lines', 1))!;
    await until(() => liveName(server) === `lines_v1_${live}`);
    const position = await harness.record(tenantId, updated('c'));
    expect(await server.reached(position, LONG)).toBe(true);
    const { generation } = await harness.live();
    expect((await generation.control()).to?.position).toBe(position);
    expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(harness.history));
    expect(server.warnings).toEqual([]);
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
          const chance = random();
          const pointer = (await harness.readModels.pointer('lines', 1))!;
          if (chance < 0.5 || pointer.previous === undefined) await harness.rebuild();
          else if (chance < 0.85) await rollback(harness.readModels, lines);
          else await prune(harness.readModels, [lines], await unusedGenerations(harness.readModels, [lines]));
          if (random() < 0.5) continue;
          const { live } = (await harness.readModels.pointer('lines', 1))!;
          await until(() => servers.every((server) => liveName(server) === `lines_v1_${live}`));
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
