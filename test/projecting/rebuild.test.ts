import { storeName } from '../support/store-name';
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
import { deferred } from '../support/waiting';
import { lineCollections, linesProjector, plainLines } from './lines';
import {
  edit,
  headOf,
  lines,
  numbersIn,
  projectInto,
  replayHarness,
  someTenants,
  type ReplayHarness,
} from './replay';
import {
  created,
  documentsOf,
  openProcess,
  openReadModels,
  streams,
  takenByNobody,
  updated,
} from './harness';

const quiet = { ifEqual: false, acceptParked: false, onStep: () => undefined };
const all = (generation: Generation) => documentsOf(generation, lineCollections);
const ACTOR = { type: 'user', id: randomUUID() } as const;

const parkedIn = async (generation: Generation): Promise<readonly string[]> => {
  const ids: string[] = [];
  for await (const tenant of parkedTenants(generation)) ids.push(tenant.tenant_id);
  return ids;
};

/** The same read models, with a change to every build that is started. */
const around = (readModels: ReadModels, change: (build: Build) => Build): ReadModels => ({
  ...readModels,
  build: async (...parts) => change(await readModels.build(...parts)),
});

const expectPlain = async (harness: ReplayHarness): Promise<void> =>
  expect(await all((await harness.catchUp()).generation)).toEqual(plainLines(harness.history));

describe('a rebuild', () => {
  it('fills a new generation, finds it equal and switches to it', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    const { generation: before } = await harness.catchUp();
    const steps: string[] = [];
    const rebuilt = await harness.rebuild(lines, { onStep: ({ step }) => void steps.push(step) });
    expect(rebuilt).toEqual({
      projection: 'lines',
      generation: 'lines_v1_2',
      events: 9,
      comparison: { documents: 12, differences: 0 },
      parked: 0,
    });
    expect([...new Set(steps)]).toEqual(['building', 'indexing', 'comparing', 'switching']);
    expect(await harness.readModels.pointer('lines', 1)).toEqual({ live: 2, previous: 1 });
    expect(await all((await harness.live()).generation)).toEqual(plainLines(harness.history));
    expect(await all(before)).toEqual(plainLines(harness.history));
    expect(await harness.readModels.leaseHolder('rebuild lines')).toBeUndefined();
  });

  it('of an empty log produces an empty generation', async () => {
    const harness = await replayHarness();
    expect(await harness.rebuild()).toMatchObject({ events: 0, parked: 0 });
    await expectPlain(harness);
  });

  it('switches even though a live document was edited, and the edit is gone', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    const { generation } = await harness.catchUp();
    await edit(generation, headOf(tenantId), { count: 99, sum: 0 });
    expect((await harness.rebuild()).comparison).toEqual({ documents: 12, differences: 1 });
    await expectPlain(harness);
    expect((await all(generation))[`${tenantId} heads all`]).toEqual({ count: 99, sum: 0 });
  });

  it('with ifEqual refuses a difference and leaves nothing behind', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    const { generation } = await harness.catchUp();
    await edit(generation, headOf(tenantId), { count: 99, sum: 0 });
    const before = await all(generation);
    await expect(harness.rebuild(lines, { ifEqual: true })).rejects.toMatchObject({
      code: 'rebuild_differs',
    });
    expect(await numbersIn(harness.readModels)).toEqual([1]);
    expect(await harness.readModels.pointer('lines', 1)).toEqual({ live: 1 });
    expect(await all(generation)).toEqual(before);
    expect(await harness.readModels.leaseHolder('rebuild lines')).toBeUndefined();
    await edit(generation, headOf(tenantId), plainLines(harness.history)[`${tenantId} heads all`]);
    expect((await harness.rebuild(lines, { ifEqual: true })).comparison?.differences).toBe(0);
  });

  it('keeps up with a writer that never stops', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    await harness.catchUp();
    const busy = {
      ...harness.log,
      head: async () => {
        await harness.record(tenantId, updated('again'));
        return harness.log.head();
      },
    };
    await rebuild({ ...harness, log: busy }, lines, quiet);
    await expectPlain(harness);
  });

  it('is refused while another one runs, naming its holder', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    await harness.catchUp();
    const [reached, proceed] = [deferred(), deferred()];
    const slow = around(harness.readModels, (generation) => ({
      ...generation,
      finish: async () => {
        reached.resolve();
        await proceed.promise;
        return generation.finish();
      },
    }));
    const first = rebuild({ ...harness, readModels: slow }, lines, quiet);
    await reached.promise;
    const holder = (await harness.readModels.leaseHolder('rebuild lines')) ?? 'nobody';
    expect(holder).toContain(String(process.pid));
    const elsewhere = await openReadModels(harness.folder);
    await expect(rebuild({ ...harness, readModels: elsewhere }, lines, quiet)).rejects.toMatchObject({
      code: 'rebuild_running',
      message: expect.stringContaining(holder),
    });
    expect(await numbersIn(harness.readModels)).toEqual([1, 2]);
    proceed.resolve();
    expect((await first).generation).toBe('lines_v1_2');
    await expectPlain(harness);
  });

  it('that was suspended while another one took over changes nothing more', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    const { generation } = await harness.catchUp();
    await edit(generation, headOf(tenantId), { count: 99, sum: 0 });
    const [reached, proceed] = [deferred(), deferred()];
    let isAsleep = false;
    const slow: ReadModels = {
      ...around(harness.readModels, (build) => ({
        ...build,
        finish: async () => {
          isAsleep = true;
          reached.resolve();
          await proceed.promise;
          return build.finish();
        },
      })),
      // A suspended process renews nothing.
      lease: async (...parts) => !isAsleep && harness.readModels.lease(...parts),
    };
    const asleep = rebuild({ ...harness, readModels: slow }, lines, { ...quiet, ifEqual: true });
    asleep.catch(() => undefined);
    await reached.promise;
    await harness.readModels.release(
      'rebuild lines',
      (await harness.readModels.leaseHolder('rebuild lines')) ?? '',
    );
    expect((await harness.rebuild()).generation).toBe('lines_v1_2');
    proceed.resolve();
    await expect(asleep).rejects.toMatchObject({ code: 'rebuild_running' });
    expect(await harness.readModels.pointer('lines', 1)).toEqual({ live: 2, previous: 1 });
    await expectPlain(harness);
  });

  it('that is refused does not undo what another one has switched to in the meantime', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    const { generation } = await harness.catchUp();
    await edit(generation, headOf(tenantId), { count: 99, sum: 0 });
    const asleep: ReadModels = {
      ...harness.readModels,
      markRemoved: async (...parts) => {
        expect((await harness.rebuild()).generation).toBe('lines_v1_2');
        return harness.readModels.markRemoved(...parts);
      },
    };
    await expect(
      rebuild({ ...harness, readModels: asleep }, lines, { ...quiet, ifEqual: true }),
    ).rejects.toMatchObject({
      code: 'rebuild_differs',
    });
    expect(await harness.readModels.pointer('lines', 1)).toEqual({ live: 2, previous: 1 });
    expect(await numbersIn(harness.readModels)).toEqual([1, 2]);
    await expectPlain(harness);
  });

  it('holds its lease for longer than creating its indexes takes', async () => {
    const harness = await replayHarness();
    await someTenants(harness, 1);
    await harness.catchUp();
    const times: number[] = [];
    const readModels: ReadModels = {
      ...harness.readModels,
      lease: (what, holder, forMs, note) => {
        if (what === 'rebuild lines') times.push(forMs);
        return harness.readModels.lease(what, holder, forMs, note);
      },
    };
    await rebuild({ ...harness, readModels }, lines, quiet);
    expect(Math.min(...times)).toBeGreaterThanOrEqual(60_000);
  });

  it('keeps its lease, even if it takes much longer than the lease lasts', async () => {
    const harness = await replayHarness();
    await someTenants(harness, 1);
    await harness.catchUp();
    const [started, proceed] = [deferred(), deferred()];
    const SHORT_MS = 2_500;
    const slow = around(
      {
        ...harness.readModels,
        lease: (what, holder, _, note) => harness.readModels.lease(what, holder, SHORT_MS, note),
      },
      (generation) => ({
        ...generation,
        finish: async () => {
          started.resolve();
          await proceed.promise;
          return generation.finish();
        },
      }),
    );
    const rebuilding = rebuild({ ...harness, readModels: slow }, lines, quiet);
    await started.promise;
    const other = await openReadModels(harness.folder);
    await takenByNobody(other, 'rebuild lines', SHORT_MS).finally(proceed.resolve);
    expect((await rebuilding).generation).toBe('lines_v1_2');
    expect(await harness.readModels.leaseHolder('rebuild lines')).toBeUndefined();
  });

  it('killed at any step resumes when it is run again; the live generation is untouched', async () => {
    let left = Number.POSITIVE_INFINITY;
    const step = (): void => {
      left -= 1;
      if (left === 0) throw new Error('killed');
    };
    const onAnswer = (what: string): void => {
      if (!['lease', 'release', 'close', 'drop'].includes(what)) step();
    };
    const harness = await replayHarness({ onWrite: step, onAnswer });
    const tenants = await someTenants(harness, 4);
    const { generation } = await harness.catchUp();
    const untouched = await all(generation);
    let kills = 0;
    let resumed = 0;
    for (let done = false; !done;) {
      const before = (await numbersIn(harness.readModels)).length;
      left = kills + 1;
      const outcome = await harness.rebuild().catch((error: unknown) => error);
      left = Number.POSITIVE_INFINITY;
      done = !(outcome instanceof Error);
      if (done) break;
      expect(String(outcome)).toMatch(/killed/);
      kills += 1;
      expect(await all(generation)).toEqual(untouched);
      const pointer = await harness.readModels.pointer('lines', 1);
      if (pointer?.live !== 1) break;
      const { generation: resumedInto } = await harness.rebuild();
      const after = await numbersIn(harness.readModels);
      if (after.length === Math.max(2, before)) resumed += 1;
      expect(after.map((number) => `lines_v1_${number}`)).toContain(resumedInto);
      await expectPlain(harness);
      expect(await rollback(harness.readModels, lines)).toBe('lines_v1_1');
      for (const number of after)
        if (number !== 1)
          await harness.readModels.drop({ projection: 'lines', version: 1, generation: number });
      await harness.readModels.point('lines', 1, { live: 1 }, await harness.readModels.pointer('lines', 1));
    }
    // The rows, heads, the control state, the opening, the indexes and the switch.
    expect(kills).toBeGreaterThan(storeName === 'sqlite' ? tenants.length * 4 : 8);
    expect(resumed).toBe(kills - 1);
    await expectPlain(harness);
  });

  it('resumes what a killed one has left, from its checkpoint', async () => {
    const harness = await replayHarness();
    const tenantId = randomUUID();
    await harness.record(tenantId, created(), ...Array.from({ length: 5_000 }, (_, i) => updated(`${i}`)));
    await harness.catchUp();
    let commits = 0;
    const counted = (limit: number) =>
      around(harness.readModels, (generation) => ({
        ...generation,
        commit: async (n, to, writes) => {
          if (++commits > limit) throw new Error('killed');
          return generation.commit(n, to, writes);
        },
      }));
    const rebuildSlowly = (limit: number) =>
      rebuild({ ...harness, readModels: counted(limit) }, lines, quiet, 1_024);
    await expect(rebuildSlowly(1)).rejects.toThrow('killed');
    commits = 0;
    const { generation } = await rebuildSlowly(99);
    expect(generation).toBe('lines_v1_2');
    expect(commits).toBe(Math.ceil(5_001 / 1_024) - 1);
    await expectPlain(harness);
  });

  it('does not resume a generation that was once live', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    await harness.catchUp();
    await harness.rebuild();
    const { generation: second } = await harness.live();
    await edit(second, headOf(tenantId), { count: 99, sum: 0 });
    await rollback(harness.readModels, lines);
    await harness.rebuild();
    await rollback(harness.readModels, lines);
    expect(await harness.readModels.pointer('lines', 1)).toEqual({ live: 1, previous: 3 });
    expect((await harness.rebuild()).generation).toBe('lines_v1_4');
    await expectPlain(harness);
  });

  it('starts from scratch if what was left belongs to another log', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    await harness.catchUp();
    const id = { projection: 'lines', version: 1, generation: 2 };
    const left = await harness.readModels.build(id, lines.collections, 'another log');
    await left.commit(0, { position: '0000000000000001', eventId: randomUUID() }, []);
    expect(await harness.rebuild()).toMatchObject({
      generation: 'lines_v1_2',
      comparison: { differences: 0 },
    });
    await expectPlain(harness);
  });

  it('of a version that nobody projects yet needs nothing to compare with', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    await harness.catchUp();
    const next = { ...lines, version: 2 };
    await harness.live(next);
    const rebuilt = await harness.rebuild(next);
    expect(rebuilt.comparison).toBeUndefined();
    expect(await harness.readModels.pointer('lines', 2)).toEqual({ live: 2 });
    expect(await all((await harness.live(next)).generation)).toEqual(plainLines(harness.history));
    expect(await harness.readModels.pointer('lines', 1)).toEqual({ live: 1 });
  });

  it('catches up a live generation that nobody projects', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    const { generation } = await harness.catchUp();
    await someTenants(harness);
    expect((await harness.rebuild()).comparison).toEqual({ documents: 24, differences: 0 });
    expect(await all(generation)).toEqual(plainLines(harness.history));
  });
});

describe('a rebuild that parks a tenant', () => {
  const old = linesProjector((event) => event.type === 'TenantUpdated' && event.data.name === 'strange');

  it('that is not parked in the live generation is refused, or accepted on request', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    await harness.record(tenantId, updated('strange'));
    await harness.catchUp(lines);
    await expect(harness.rebuild(old)).rejects.toMatchObject({
      code: 'rebuild_parks',
      message: expect.stringContaining(tenantId),
    });
    expect(await numbersIn(harness.readModels)).toEqual([1]);
    expect(await harness.rebuild(old, { acceptParked: true })).toMatchObject({ parked: 1 });
    expect(await parkedIn((await harness.live()).generation)).toEqual([tenantId]);
  });

  it('that is parked in the live generation as well is switched to', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    await harness.record(tenantId, updated('strange'));
    await harness.catchUp(old);
    expect(await harness.rebuild(old)).toMatchObject({ parked: 0, comparison: { differences: 0 } });
    expect(await parkedIn((await harness.live()).generation)).toEqual([tenantId]);
  });

  it('does not park it any more if the event was set aside since the rebuild was killed', async () => {
    const harness = await replayHarness();
    const [tenantId = '', other = ''] = await someTenants(harness);
    const eventId = harness.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
    await harness.record(tenantId, updated('waits'));
    const live = await harness.catchUp();
    const dying = around(harness.readModels, (generation) => ({
      ...generation,
      finish: () => Promise.reject(new Error('killed')),
    }));
    await expect(rebuild({ ...harness, readModels: dying }, lines, quiet)).rejects.toThrow('killed');
    await setAside(
      { ...harness, live: [live] },
      { eventId, reason: 'paint', actor: ACTOR, at: new Date().toISOString() },
    );
    const server = await openProcess(harness.log, await openReadModels(harness.folder), [lines]);
    expect(await server.retryParked()).toBe('done');
    await harness.record(other, updated('c'));
    await harness.catchUp();
    const rebuilt = await harness.rebuild();
    expect(rebuilt).toMatchObject({ parked: 0, comparison: { differences: 0 }, generation: 'lines_v1_2' });
    await expectPlain(harness);
  });
});

describe('a rollback', () => {
  it('returns to the previous generation, and forward again', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    const first = await harness.catchUp();
    await harness.rebuild();
    expect(await rollback(harness.readModels, lines)).toBe('lines_v1_1');
    expect(generationName((await harness.live()).generation.id)).toBe('lines_v1_1');
    await projectInto(harness, first);
    expect(await rollback(harness.readModels, lines)).toBe('lines_v1_2');
    await expectPlain(harness);
  });

  it('is refused if there is no previous generation', async () => {
    const harness = await replayHarness();
    await expect(rollback(harness.readModels, lines)).rejects.toMatchObject({
      code: 'nothing_to_roll_back_to',
    });
    await harness.live();
    await expect(rollback(harness.readModels, lines)).rejects.toMatchObject({
      code: 'nothing_to_roll_back_to',
    });
  });
});
