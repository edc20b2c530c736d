import { storeName } from '../support/store-under-test';
import { randomUUID } from 'node:crypto';
import { parkedTenants, setAside } from '../../src/projecting/parking';
import { rollback } from '../../src/projecting/rebuild';
import { rebuild } from '../support/rebuild';
import {
  generationName,
  type Build,
  type Generation,
  type ReadModels,
} from '../../src/read-models/read-models';
import { signal } from '../support/waiting';
import { lineCollections, linesProjector, plainLines } from './lines';
import {
  edit,
  headOf,
  lines,
  numbersIn,
  projectInto,
  replaying,
  someTenants,
  type Replaying,
} from './replay';
import { created, documentsOf, openProcess, openReadModels, streams, takenByNobody, updated } from './world';

const quiet = { ifEqual: false, acceptParked: false, onStep: () => undefined };
const all = (generation: Generation) => documentsOf(generation, lineCollections);
const ACTOR = { type: 'user', id: randomUUID() } as const;

const parkedIn = async (generation: Generation): Promise<readonly string[]> => {
  const ids: string[] = [];
  for await (const tenant of parkedTenants(generation)) ids.push(tenant.tenant_id);
  return ids;
};

/** The same read models, with something done to each build that is begun. */
const around = (readModels: ReadModels, change: (build: Build) => Build): ReadModels => ({
  ...readModels,
  build: async (...parts) => change(await readModels.build(...parts)),
});

const expectPlain = async (world: Replaying): Promise<void> =>
  expect(await all((await world.catchUp()).generation)).toEqual(plainLines(world.history));

describe('a rebuild', () => {
  it('fills a fresh generation, finds it equal and switches to it', async () => {
    const world = await replaying();
    await someTenants(world);
    const { generation: before } = await world.catchUp();
    const steps: string[] = [];
    const rebuilt = await world.rebuild(lines, { onStep: ({ step }) => void steps.push(step) });
    expect(rebuilt).toEqual({
      projection: 'lines',
      generation: 'lines_v1_2',
      events: 9,
      comparison: { documents: 12, differences: 0 },
      parked: 0,
    });
    expect([...new Set(steps)]).toEqual(['building', 'indexing', 'comparing', 'switching']);
    expect(await world.readModels.pointer('lines', 1)).toEqual({ live: 2, previous: 1 });
    expect(await all((await world.live()).generation)).toEqual(plainLines(world.history));
    expect(await all(before)).toEqual(plainLines(world.history));
    expect(await world.readModels.leaseHolder('rebuild lines')).toBeUndefined();
  });

  it('of an empty log is an empty generation', async () => {
    const world = await replaying();
    expect(await world.rebuild()).toMatchObject({ events: 0, parked: 0 });
    await expectPlain(world);
  });

  it('switches although a live document was edited, and the edit is gone', async () => {
    const world = await replaying();
    const [tenantId = ''] = await someTenants(world);
    const { generation } = await world.catchUp();
    await edit(generation, headOf(tenantId), { count: 99, sum: 0 });
    expect((await world.rebuild()).comparison).toEqual({ documents: 12, differences: 1 });
    await expectPlain(world);
    expect((await all(generation))[`${tenantId} heads all`]).toEqual({ count: 99, sum: 0 });
  });

  it('with ifEqual refuses a difference and leaves nothing behind', async () => {
    const world = await replaying();
    const [tenantId = ''] = await someTenants(world);
    const { generation } = await world.catchUp();
    await edit(generation, headOf(tenantId), { count: 99, sum: 0 });
    const was = await all(generation);
    await expect(world.rebuild(lines, { ifEqual: true })).rejects.toMatchObject({ code: 'rebuild_differs' });
    expect(await numbersIn(world.readModels)).toEqual([1]);
    expect(await world.readModels.pointer('lines', 1)).toEqual({ live: 1 });
    expect(await all(generation)).toEqual(was);
    expect(await world.readModels.leaseHolder('rebuild lines')).toBeUndefined();
    await edit(generation, headOf(tenantId), plainLines(world.history)[`${tenantId} heads all`]);
    expect((await world.rebuild(lines, { ifEqual: true })).comparison?.differences).toBe(0);
  });

  it('goes on while a writer never stops', async () => {
    const world = await replaying();
    const [tenantId = ''] = await someTenants(world);
    await world.catchUp();
    const busy = {
      ...world.log,
      head: async () => {
        await world.record(tenantId, updated('again'));
        return world.log.head();
      },
    };
    await rebuild({ ...world, log: busy }, lines, quiet);
    await expectPlain(world);
  });

  it('is refused while another one runs, with the name of its holder', async () => {
    const world = await replaying();
    await someTenants(world);
    await world.catchUp();
    const [reached, goOn] = [signal(), signal()];
    const slow = around(world.readModels, (generation) => ({
      ...generation,
      finish: async () => {
        reached.give();
        await goOn.given;
        return generation.finish();
      },
    }));
    const first = rebuild({ ...world, readModels: slow }, lines, quiet);
    await reached.given;
    const holder = (await world.readModels.leaseHolder('rebuild lines')) ?? 'nobody';
    expect(holder).toContain(String(process.pid));
    const elsewhere = await openReadModels(world.folder);
    await expect(rebuild({ ...world, readModels: elsewhere }, lines, quiet)).rejects.toMatchObject({
      code: 'rebuild_running',
      message: expect.stringContaining(holder),
    });
    expect(await numbersIn(world.readModels)).toEqual([1, 2]);
    goOn.give();
    expect((await first).generation).toBe('lines_v1_2');
    await expectPlain(world);
  });

  it('that slept while another one took over changes nothing more', async () => {
    const world = await replaying();
    const [tenantId = ''] = await someTenants(world);
    const { generation } = await world.catchUp();
    await edit(generation, headOf(tenantId), { count: 99, sum: 0 });
    const [reached, goOn] = [signal(), signal()];
    let isAsleep = false;
    const slow: ReadModels = {
      ...around(world.readModels, (one) => ({
        ...one,
        finish: async () => {
          isAsleep = true;
          reached.give();
          await goOn.given;
          return one.finish();
        },
      })),
      // Who sleeps renews nothing.
      lease: async (...parts) => !isAsleep && world.readModels.lease(...parts),
    };
    const asleep = rebuild({ ...world, readModels: slow }, lines, { ...quiet, ifEqual: true });
    asleep.catch(() => undefined);
    await reached.given;
    await world.readModels.release(
      'rebuild lines',
      (await world.readModels.leaseHolder('rebuild lines')) ?? '',
    );
    expect((await world.rebuild()).generation).toBe('lines_v1_2');
    goOn.give();
    await expect(asleep).rejects.toMatchObject({ code: 'rebuild_running' });
    expect(await world.readModels.pointer('lines', 1)).toEqual({ live: 2, previous: 1 });
    await expectPlain(world);
  });

  it('that is refused leaves what another one has switched to meanwhile', async () => {
    const world = await replaying();
    const [tenantId = ''] = await someTenants(world);
    const { generation } = await world.catchUp();
    await edit(generation, headOf(tenantId), { count: 99, sum: 0 });
    const asleep: ReadModels = {
      ...world.readModels,
      markRemoved: async (...parts) => {
        expect((await world.rebuild()).generation).toBe('lines_v1_2');
        return world.readModels.markRemoved(...parts);
      },
    };
    await expect(
      rebuild({ ...world, readModels: asleep }, lines, { ...quiet, ifEqual: true }),
    ).rejects.toMatchObject({
      code: 'rebuild_differs',
    });
    expect(await world.readModels.pointer('lines', 1)).toEqual({ live: 2, previous: 1 });
    expect(await numbersIn(world.readModels)).toEqual([1, 2]);
    await expectPlain(world);
  });

  it('holds its lease longer than its indexes take', async () => {
    const world = await replaying();
    await someTenants(world, 1);
    await world.catchUp();
    const times: number[] = [];
    const readModels: ReadModels = {
      ...world.readModels,
      lease: (what, holder, forMs, note) => {
        if (what === 'rebuild lines') times.push(forMs);
        return world.readModels.lease(what, holder, forMs, note);
      },
    };
    await rebuild({ ...world, readModels }, lines, quiet);
    expect(Math.min(...times)).toBeGreaterThanOrEqual(60_000);
  });

  it('keeps its lease, however much longer than that lasts it takes', async () => {
    const world = await replaying();
    await someTenants(world, 1);
    await world.catchUp();
    const [begun, goOn] = [signal(), signal()];
    const SHORT_MS = 2_500;
    const slow = around(
      {
        ...world.readModels,
        lease: (what, holder, _, note) => world.readModels.lease(what, holder, SHORT_MS, note),
      },
      (generation) => ({
        ...generation,
        finish: async () => {
          begun.give();
          await goOn.given;
          return generation.finish();
        },
      }),
    );
    const rebuilding = rebuild({ ...world, readModels: slow }, lines, quiet);
    await begun.given;
    const other = await openReadModels(world.folder);
    await takenByNobody(other, 'rebuild lines', SHORT_MS).finally(goOn.give);
    expect((await rebuilding).generation).toBe('lines_v1_2');
    expect(await world.readModels.leaseHolder('rebuild lines')).toBeUndefined();
  });

  it('that is killed at any step goes on when it is run again; live is untouched', async () => {
    let left = Number.POSITIVE_INFINITY;
    const step = (): void => {
      left -= 1;
      if (left === 0) throw new Error('killed');
    };
    const onAnswer = (what: string): void => {
      if (!['lease', 'release', 'close', 'drop'].includes(what)) step();
    };
    const world = await replaying({ onWrite: step, onAnswer });
    const tenants = await someTenants(world, 4);
    const { generation } = await world.catchUp();
    const was = await all(generation);
    let kills = 0;
    let resumed = 0;
    for (let done = false; !done;) {
      const before = (await numbersIn(world.readModels)).length;
      left = kills + 1;
      const outcome = await world.rebuild().catch((error: unknown) => error);
      left = Number.POSITIVE_INFINITY;
      done = !(outcome instanceof Error);
      if (done) break;
      expect(String(outcome)).toMatch(/killed/);
      kills += 1;
      expect(await all(generation)).toEqual(was);
      const pointer = await world.readModels.pointer('lines', 1);
      if (pointer?.live !== 1) break;
      const { generation: resumedInto } = await world.rebuild();
      const after = await numbersIn(world.readModels);
      if (after.length === Math.max(2, before)) resumed += 1;
      expect(after.map((number) => `lines_v1_${number}`)).toContain(resumedInto);
      await expectPlain(world);
      expect(await rollback(world.readModels, lines)).toBe('lines_v1_1');
      for (const number of after)
        if (number !== 1)
          await world.readModels.drop({ projection: 'lines', version: 1, generation: number });
      await world.readModels.point('lines', 1, { live: 1 }, await world.readModels.pointer('lines', 1));
    }
    // The rows, heads, the control state, the opening, the indexes and the switch.
    expect(kills).toBeGreaterThan(storeName === 'sqlite' ? tenants.length * 4 : 8);
    expect(resumed).toBe(kills - 1);
    await expectPlain(world);
  });

  it('goes on with what a killed one has left, at its position', async () => {
    const world = await replaying();
    const tenantId = randomUUID();
    await world.record(tenantId, created(), ...Array.from({ length: 5_000 }, (_, i) => updated(`${i}`)));
    await world.catchUp();
    let commits = 0;
    const counted = (limit: number) =>
      around(world.readModels, (generation) => ({
        ...generation,
        commit: async (n, to, writes) => {
          if (++commits > limit) throw new Error('killed');
          return generation.commit(n, to, writes);
        },
      }));
    const rebuildSlowly = (limit: number) =>
      rebuild({ ...world, readModels: counted(limit) }, lines, quiet, 1_024);
    await expect(rebuildSlowly(1)).rejects.toThrow('killed');
    commits = 0;
    const { generation } = await rebuildSlowly(99);
    expect(generation).toBe('lines_v1_2');
    expect(commits).toBe(Math.ceil(5_001 / 1_024) - 1);
    await expectPlain(world);
  });

  it('does not go on with a generation that was live once', async () => {
    const world = await replaying();
    const [tenantId = ''] = await someTenants(world);
    await world.catchUp();
    await world.rebuild();
    const { generation: second } = await world.live();
    await edit(second, headOf(tenantId), { count: 99, sum: 0 });
    await rollback(world.readModels, lines);
    await world.rebuild();
    await rollback(world.readModels, lines);
    expect(await world.readModels.pointer('lines', 1)).toEqual({ live: 1, previous: 3 });
    expect((await world.rebuild()).generation).toBe('lines_v1_4');
    await expectPlain(world);
  });

  it('starts over when what was left belongs to another log', async () => {
    const world = await replaying();
    await someTenants(world);
    await world.catchUp();
    const id = { projection: 'lines', version: 1, generation: 2 };
    const left = await world.readModels.build(id, lines.collections, 'another log');
    await left.commit(0, { position: '0000000000000001', eventId: randomUUID() }, []);
    expect(await world.rebuild()).toMatchObject({ generation: 'lines_v1_2', comparison: { differences: 0 } });
    await expectPlain(world);
  });

  it('of a version that nobody projects yet needs nothing to compare with', async () => {
    const world = await replaying();
    await someTenants(world);
    await world.catchUp();
    const next = { ...lines, version: 2 };
    await world.live(next);
    const rebuilt = await world.rebuild(next);
    expect(rebuilt.comparison).toBeUndefined();
    expect(await world.readModels.pointer('lines', 2)).toEqual({ live: 2 });
    expect(await all((await world.live(next)).generation)).toEqual(plainLines(world.history));
    expect(await world.readModels.pointer('lines', 1)).toEqual({ live: 1 });
  });

  it('brings a live one along that nobody projects', async () => {
    const world = await replaying();
    await someTenants(world);
    const { generation } = await world.catchUp();
    await someTenants(world);
    expect((await world.rebuild()).comparison).toEqual({ documents: 24, differences: 0 });
    expect(await all(generation)).toEqual(plainLines(world.history));
  });
});

describe('a rebuild that parks a tenant', () => {
  const old = linesProjector((event) => event.type === 'TenantUpdated' && event.data.name === 'strange');

  it('which live does not park is refused, or accepted', async () => {
    const world = await replaying();
    const [tenantId = ''] = await someTenants(world);
    await world.record(tenantId, updated('strange'));
    await world.catchUp(lines);
    await expect(world.rebuild(old)).rejects.toMatchObject({
      code: 'rebuild_parks',
      message: expect.stringContaining(tenantId),
    });
    expect(await numbersIn(world.readModels)).toEqual([1]);
    expect(await world.rebuild(old, { acceptParked: true })).toMatchObject({ parked: 1 });
    expect(await parkedIn((await world.live()).generation)).toEqual([tenantId]);
  });

  it('as live does is switched to', async () => {
    const world = await replaying();
    const [tenantId = ''] = await someTenants(world);
    await world.record(tenantId, updated('strange'));
    await world.catchUp(old);
    expect(await world.rebuild(old)).toMatchObject({ parked: 0, comparison: { differences: 0 } });
    expect(await parkedIn((await world.live()).generation)).toEqual([tenantId]);
  });

  it('set aside since it was killed goes on without parking it', async () => {
    const world = await replaying();
    const [tenantId = '', other = ''] = await someTenants(world);
    const eventId = world.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
    await world.record(tenantId, updated('waits'));
    const live = await world.catchUp();
    const dying = around(world.readModels, (generation) => ({
      ...generation,
      finish: () => Promise.reject(new Error('killed')),
    }));
    await expect(rebuild({ ...world, readModels: dying }, lines, quiet)).rejects.toThrow('killed');
    await setAside(
      { ...world, live: [live] },
      { eventId, reason: 'paint', actor: ACTOR, at: new Date().toISOString() },
    );
    const server = await openProcess(world.log, await openReadModels(world.folder), [lines]);
    expect(await server.retryParked()).toBe('done');
    await world.record(other, updated('c'));
    await world.catchUp();
    const rebuilt = await world.rebuild();
    expect(rebuilt).toMatchObject({ parked: 0, comparison: { differences: 0 }, generation: 'lines_v1_2' });
    await expectPlain(world);
  });
});

describe('a rollback', () => {
  it('goes back to the generation before, and forth again', async () => {
    const world = await replaying();
    await someTenants(world);
    const first = await world.catchUp();
    await world.rebuild();
    expect(await rollback(world.readModels, lines)).toBe('lines_v1_1');
    expect(generationName((await world.live()).generation.id)).toBe('lines_v1_1');
    await projectInto(world, first);
    expect(await rollback(world.readModels, lines)).toBe('lines_v1_2');
    await expectPlain(world);
  });

  it('is refused when there is none before', async () => {
    const world = await replaying();
    await expect(rollback(world.readModels, lines)).rejects.toMatchObject({
      code: 'nothing_to_roll_back_to',
    });
    await world.live();
    await expect(rollback(world.readModels, lines)).rejects.toMatchObject({
      code: 'nothing_to_roll_back_to',
    });
  });
});
