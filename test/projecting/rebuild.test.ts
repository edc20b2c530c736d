import { isClustered } from '../support/profile';
import { randomUUID } from 'node:crypto';
import { setAside } from '../../src/projecting/set-aside';
import { rebuild } from '../support/rebuild';
import {
  generationName,
  type Build,
  type Generation,
  type ReadModels,
} from '../../src/read-models/read-models';
import { createAndBuild, leaseHolder } from '../support/generations';
import { deferred } from '../support/waiting';
import { lineCollections, linesProjector, plainLines } from './lines';
import {
  edit,
  headOf,
  lines,
  liveIn,
  numbersIn,
  replayHarness,
  someTenants,
  type ReplayHarness,
} from './replay';
import {
  created,
  documentsOf,
  nth,
  numbered,
  openProcess,
  openReadModels,
  parkedIn,
  streams,
  takenByNobody,
  updated,
} from './harness';

const accepting = { acceptDifferences: true };
const all = (generation: Generation) => documentsOf(generation, lineCollections);
const ACTOR = { type: 'user', id: randomUUID() } as const;

/** The same read models, with a change to every build that is started. */
const around = (readModels: ReadModels, change: (build: Build) => Build): ReadModels => ({
  ...readModels,
  build: async (...dependencies) => change(await readModels.build(...dependencies)),
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
    expect({ ...rebuilt, generation: numbered(rebuilt.generation) }).toEqual({
      projection: 'lines',
      generation: 'lines_v1_2',
      events: 9,
      comparison: { documents: 12, differences: 0 },
      parked: 0,
    });
    expect([...new Set(steps)]).toEqual(['building', 'indexing', 'comparing', 'switching']);
    expect(await liveIn(harness.readModels)).toBe('lines_v1_2');
    expect(await all((await harness.live()).generation)).toEqual(plainLines(harness.history));
    expect(await all(before)).toEqual(plainLines(harness.history));
    expect(await leaseHolder(harness.readModels, 'rebuild lines')).toBeUndefined();
  });

  it('of an empty log produces an empty generation', async () => {
    const harness = await replayHarness();
    expect(await harness.rebuild()).toMatchObject({ events: 0, parked: 0 });
    await expectPlain(harness);
  });

  it('refuses to switch if documents differ, keeps what it built, and switches to it once that is accepted', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    const { generation } = await harness.catchUp();
    await edit(generation, headOf(tenantId), { count: 99, sum: 0 });
    const before = await all(generation);
    const found: unknown[] = [];
    const refusing = { acceptDifferences: false, onDifference: (one: unknown) => void found.push(one) };
    await expect(harness.rebuild(lines, refusing)).rejects.toMatchObject({
      code: 'rebuild_differs',
      message: expect.stringMatching(/1 document differs .* projections rebuild --accept-differences/),
    });
    expect(found).toEqual([
      expect.objectContaining({ tenantId, collection: 'heads', live: { count: 99, sum: 0 } }),
    ]);
    expect(await liveIn(harness.readModels)).toBe('lines_v1_1');
    expect(await all(generation)).toEqual(before);
    expect(await leaseHolder(harness.readModels, 'rebuild lines')).toBeUndefined();
    await expect(harness.rebuild(lines, refusing)).rejects.toMatchObject({ code: 'rebuild_differs' });
    expect(await numbersIn(harness.readModels)).toEqual(['lines_v1_1', 'lines_v1_2']);
    expect(numbered((await harness.rebuild(lines, { acceptDifferences: true })).generation)).toBe(
      'lines_v1_2',
    );
    await expectPlain(harness);
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
    await rebuild({ ...harness, log: busy }, lines, accepting);
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
    const first = rebuild({ ...harness, readModels: slow }, lines, accepting);
    await reached.promise;
    const holder = (await leaseHolder(harness.readModels, 'rebuild lines')) ?? 'nobody';
    expect(holder).toContain(String(process.pid));
    const elsewhere = await openReadModels(harness.folder);
    await expect(rebuild({ ...harness, readModels: elsewhere }, lines, accepting)).rejects.toMatchObject({
      code: 'rebuild_running',
      message: expect.stringContaining(holder),
    });
    expect(await numbersIn(harness.readModels)).toEqual(['lines_v1_1', 'lines_v1_2']);
    proceed.resolve();
    expect(numbered((await first).generation)).toBe('lines_v1_2');
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
      lease: async (...dependencies) => (isAsleep ? new Set() : harness.readModels.lease(...dependencies)),
    };
    const asleep = rebuild({ ...harness, readModels: slow }, lines, {});
    asleep.catch(() => undefined);
    await reached.promise;
    const holder = (await leaseHolder(harness.readModels, 'rebuild lines')) ?? '';
    await harness.readModels.release(['rebuild lines'], holder);
    expect(numbered((await harness.rebuild()).generation)).toBe('lines_v1_2');
    proceed.resolve();
    await expect(asleep).rejects.toMatchObject({ code: 'rebuild_running' });
    expect(await liveIn(harness.readModels)).toBe('lines_v1_2');
    await expectPlain(harness);
  });

  it('keeps its lease, even if it takes much longer than the lease lasts', async () => {
    const harness = await replayHarness();
    await someTenants(harness, 1);
    await harness.catchUp();
    const renewals: (string | undefined)[] = [];
    const [started, proceed] = [deferred(), deferred()];
    const SHORT_MS = 600;
    const slow = around(
      {
        ...harness.readModels,
        leaseMs: SHORT_MS,
        lease: (whats, holder, note) => {
          renewals.push(note);
          return harness.readModels.lease(whats, holder, note);
        },
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
    const rebuilding = rebuild({ ...harness, readModels: slow }, lines, accepting);
    await started.promise;
    const other = await openReadModels(harness.folder);
    await takenByNobody(other, 'rebuild lines', 3 * SHORT_MS).finally(proceed.resolve);
    expect(renewals.length).toBeGreaterThan(2);
    expect(numbered((await rebuilding).generation)).toBe('lines_v1_2');
    expect(await leaseHolder(harness.readModels, 'rebuild lines')).toBeUndefined();
  });

  it('killed at any step resumes when it is run again; the live generation is untouched', async () => {
    let left = Number.POSITIVE_INFINITY;
    const step = (): void => {
      left -= 1;
      if (left === 0) throw new Error('killed');
    };
    const onAnswer = (what: string): void => {
      if (!['lease', 'release', 'close', 'remove'].includes(what)) step();
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
      if ((await liveIn(harness.readModels)) !== 'lines_v1_1') break;
      const { generation: resumedInto } = await harness.rebuild();
      const after = (await harness.readModels.state()).generations;
      if (after.length === Math.max(2, before)) resumed += 1;
      expect(after.map(generationName)).toContain(resumedInto);
      await expectPlain(harness);
      const switched = after.find(({ isLive }) => isLive)!;
      expect(await harness.readModels.makeLive(nth(1), switched.generation)).toBe(true);
      for (const id of after)
        if (id.generation !== nth(1).generation) await harness.readModels.remove(id, {});
    }
    // The rows, heads, the control state, the opening, the indexes and the switch.
    expect(kills).toBeGreaterThan(!isClustered ? tenants.length * 4 : 8);
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
      rebuild({ ...harness, readModels: counted(limit) }, lines, accepting, 1_024);
    await expect(rebuildSlowly(1)).rejects.toThrow('killed');
    commits = 0;
    const { generation } = await rebuildSlowly(99);
    expect(numbered(generation)).toBe('lines_v1_2');
    expect(commits).toBe(Math.ceil(5_001 / 1_024) - 1);
    await expectPlain(harness);
  });

  it('does not resume a generation that was once live', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    const { generation: first } = await harness.catchUp();
    await harness.rebuild();
    await edit(first, headOf(tenantId), { count: 99, sum: 0 });
    expect(numbered((await harness.rebuild()).generation)).toBe('lines_v1_3');
    await expectPlain(harness);
  });

  it('starts from scratch if what was left belongs to another log', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    await harness.catchUp();
    const id = { projection: 'lines', version: 1, generation: 'left' };
    const left = await createAndBuild(harness.readModels, id, lines.collections, 'another log');
    await left.commit(0, { position: '0000000000000001', eventId: randomUUID() }, []);
    expect(await harness.rebuild()).toMatchObject({ comparison: { differences: 0 } });
    expect(await numbersIn(harness.readModels)).toEqual(['lines_v1_1', 'lines_v1_3']);
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
    expect(await liveIn(harness.readModels, 2)).toBe('lines_v2_2');
    expect(await all((await harness.live(next)).generation)).toEqual(plainLines(harness.history));
    expect(await liveIn(harness.readModels)).toBe('lines_v1_1');
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
    await expect(harness.rebuild(old, { acceptDifferences: false })).rejects.toMatchObject({
      code: 'rebuild_differs',
      message: expect.stringContaining(tenantId),
    });
    expect(await liveIn(harness.readModels)).toBe('lines_v1_1');
    const accepted = await harness.rebuild(old, { acceptDifferences: true });
    expect([accepted.parked, numbered(accepted.generation)]).toEqual([1, 'lines_v1_2']);
    expect(await parkedIn((await harness.live()).generation)).toMatchObject([{ tenant_id: tenantId }]);
  });

  it('that is parked in the live generation as well is switched to', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    await harness.record(tenantId, updated('strange'));
    await harness.catchUp(old);
    expect(await harness.rebuild(old)).toMatchObject({ parked: 0, comparison: { differences: 0 } });
    expect(await parkedIn((await harness.live()).generation)).toMatchObject([{ tenant_id: tenantId }]);
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
    await expect(rebuild({ ...harness, readModels: dying }, lines, accepting)).rejects.toThrow('killed');
    await setAside(
      { ...harness, live: [live] },
      { eventId, reason: 'paint', actor: ACTOR, at: new Date().toISOString() },
    );
    const server = await openProcess(harness.log, await openReadModels(harness.folder), [lines]);
    expect(await server.retryParked()).toBe('done');
    await harness.record(other, updated('c'));
    await harness.catchUp();
    const rebuilt = await harness.rebuild();
    expect(rebuilt).toMatchObject({ parked: 0, comparison: { differences: 0 } });
    expect(numbered(rebuilt.generation)).toBe('lines_v1_2');
    await expectPlain(harness);
  });
});
