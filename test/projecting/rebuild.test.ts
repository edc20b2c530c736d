import { randomUUID } from 'node:crypto';
import { mustHoldEventsOf, rebuild, type RebuildOptions } from '../../src/projecting/rebuild';
import type { ReadModels, ReadModelSet } from '../../src/read-models/read-models';
import { TIMES } from '../../src/times';
import {
  documentsOf,
  headOf,
  linesWithoutStrange,
  parkedIn,
  passing,
  programOf,
  projectionOf,
  projectTenant,
  replayHarness,
  someTenants,
  streams,
  turn,
  updated,
  type ReplayHarness,
} from './harness';
import { lineCollections, plainLines } from './lines';

const strict: RebuildOptions = {
  acceptDifferences: false,
  onStep: () => undefined,
  onDifference: () => undefined,
};
const accepting = { ...strict, acceptDifferences: true };

/** For this process, everything that is not in use was left long ago. */
const AT_ONCE = -1;

afterEach(() => jest.restoreAllMocks());

const all = (set: ReadModelSet) => documentsOf(set, lineCollections);
const liveOf = async ({ readModels }: ReplayHarness): Promise<ReadModelSet> => (await readModels.live())!.set;
const idsOf = async ({ readModels }: ReplayHarness): Promise<readonly string[]> =>
  (await readModels.list()).map(({ id }) => id);

const expectPlain = async (harness: ReplayHarness): Promise<void> =>
  expect(await all(await harness.catchUp(await liveOf(harness)))).toEqual(plainLines(harness.history));

/** The same store, with a change to every set that is created. */
const around = (readModels: ReadModels, change: (set: ReadModelSet) => ReadModelSet): ReadModels => ({
  ...readModels,
  create: async (log) => change(await readModels.create(log)),
});

describe('a rebuild', () => {
  it('fills a new set, finds it equal and switches to it', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    await harness.catchUp();
    const steps: string[] = [];
    const rebuilt = await rebuild(harness, {
      ...strict,
      onStep: (step) => void steps.push(JSON.stringify(step)),
    });
    // Three tenants with a head, three rows and the revision of a stream.
    expect(rebuilt).toMatchObject({ comparison: { documents: 15, differences: 0 }, parked: 0 });
    expect(steps).toEqual([
      '{"step":"building","done":9,"total":9}',
      '{"step":"indexing"}',
      '{"step":"comparing"}',
      '{"step":"switching"}',
    ]);
    expect((await liveOf(harness)).id).toBe(rebuilt.set.id);
    expect((await harness.set.control()).next).toBe(rebuilt.set.id);
    await expectPlain(harness);
  });

  it('of an empty log makes an empty set, and the first set needs nothing to compare with', async () => {
    const harness = await replayHarness();
    expect(await rebuild(harness, strict)).toMatchObject({ parked: 0 });
    await someTenants(harness);
    const readModels = (await replayHarness()).place.open();
    await readModels.abandon(readModels.version);
    const { comparison, set } = await rebuild({ ...harness, readModels }, strict);
    expect(comparison).toBeUndefined();
    expect((await readModels.live())?.set.id).toBe(set.id);
    expect(await all(set)).toEqual(plainLines(harness.history));
  });

  it('refuses to switch if documents differ, and switches once that is accepted', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    await harness.catchUp();
    harness.edit(headOf(tenantId), { count: 99, sum: 0 });
    const before = await all(harness.set);
    const found: unknown[] = [];
    const refusing = { ...strict, onDifference: (one: unknown) => void found.push(one) };
    await expect(rebuild(harness, refusing)).rejects.toMatchObject({
      code: 'rebuild_differs',
      message: expect.stringMatching(/^1 document.* differ.* rebuild --accept-differences/),
    });
    expect(found).toEqual([
      expect.objectContaining({ ...headOf(tenantId), kind: 'differs', live: { count: 99, sum: 0 } }),
    ]);
    expect((await liveOf(harness)).id).toBe(harness.set.id);
    expect(await all(harness.set)).toEqual(before);
    await rebuild({ ...harness, readModels: harness.place.open(AT_ONCE) }, accepting);
    expect(await idsOf(harness)).toHaveLength(2);
    await expectPlain(harness);
  });

  it('keeps up with a writer and a projector that never stop', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    await harness.catchUp();
    const moveOn = async (): Promise<void> => {
      await harness.record(tenantId, updated('again'));
      await harness.catchUp();
    };
    let calls = 0;
    const busy: ReadModels = {
      ...harness.readModels,
      succeed: async (built, former, options) => {
        calls += 1;
        await moveOn();
        return harness.readModels.succeed(built, former, options);
      },
    };
    const slow = around(busy, (set) => ({ ...set, finish: () => moveOn().then(set.finish) }));
    const { set } = await rebuild({ ...harness, readModels: slow }, strict);
    expect([calls, (await set.control()).to?.position]).toEqual([1, harness.history.at(-1)?.position]);
    await expectPlain(harness);
  });

  it('is repeated if the answer to the switch was lost', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    await harness.catchUp();
    let calls = 0;
    const lost: ReadModels = {
      ...harness.readModels,
      succeed: async (...dependencies) => {
        const outcome = await harness.readModels.succeed(...dependencies);
        if (calls++ === 0) throw new Error('no answer');
        return outcome;
      },
    };
    const { set } = await rebuild({ ...harness, readModels: lost }, strict);
    expect([calls, (await liveOf(harness)).id]).toEqual([2, set.id]);
  });

  it('gives up if another process has switched meanwhile', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    await harness.catchUp();
    const other: ReadModels = {
      ...harness.readModels,
      succeed: async (built, former) => {
        await rebuild(harness, strict);
        return harness.readModels.succeed(built, former);
      },
    };
    await expect(rebuild({ ...harness, readModels: other }, strict)).rejects.toMatchObject({
      code: 'rebuild_running',
    });
    await expectPlain(harness);
  });

  it('fails if it was taken for dead, and leaves the live set alone', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    await harness.catchUp();
    const suspended = around(harness.readModels, (set) => ({
      ...set,
      finish: async () => {
        expect(await harness.place.open(AT_ONCE).remove(set.id)).toBe(true);
        await someTenants(harness, 1);
      },
    }));
    await expect(rebuild({ ...harness, readModels: suspended }, strict)).rejects.toMatchObject({
      code: 'read_model_set_removed',
    });
    expect((await liveOf(harness)).id).toBe(harness.set.id);
  });

  it('killed at any step leaves the live set alone, and what it left is removed by the next one', async () => {
    let left = Number.POSITIVE_INFINITY;
    const harness = await replayHarness();
    await someTenants(harness, 2);
    await harness.catchUp();
    const killed = async (call: () => Promise<unknown>): Promise<unknown> => {
      left -= 1;
      if (left <= 0) throw new Error('killed');
      return call();
    };
    const killable = around(passing(harness.place.open(AT_ONCE), killed), (set) => passing(set, killed));
    let kills = 0;
    for (left = 1; ; left = kills + 1) {
      const untouched = await all(await liveOf(harness));
      const outcome = await rebuild({ ...harness, readModels: killable }, strict).catch(
        (error: Error) => error,
      );
      left = Number.POSITIVE_INFINITY;
      expect(await all(await liveOf(harness))).toEqual(untouched);
      if (!(outcome instanceof Error)) break;
      kills += 1;
    }
    expect(kills).toBeGreaterThan(10);
    await rebuild({ ...harness, readModels: harness.place.open(AT_ONCE) }, strict);
    // The live one, and the one before.
    expect(await idsOf(harness)).toHaveLength(2);
    await expectPlain(harness);
  }, 30_000);

  it('renews what it builds', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    let renewals = 0;
    const slow = around(harness.readModels, (set) => ({
      ...set,
      renew: async () => {
        renewals += 1;
        return set.renew();
      },
      finish: async () => {
        while (renewals < 2) await turn();
      },
    }));
    await rebuild({ ...harness, readModels: slow }, strict);
    expect(renewals).toBe(2);
  });

  it('is switched to without a comparison if the live set is of another log', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    const place = (await replayHarness()).place.open();
    const to = { position: '9999999999999999', eventId: randomUUID() };
    await (await place.live())?.set.advance(new Map(), async () => [], to);
    const { comparison } = await rebuild({ ...harness, readModels: place }, strict);
    expect(comparison).toBeUndefined();
    const { set } = (await place.live())!;
    expect(await all(set)).toEqual(plainLines(harness.history));
  });

  it.each<[string, (harness: ReplayHarness, tenantId: string, position: string) => Promise<unknown>]>([
    ['followed', (harness) => harness.catchUp()],
    [
      'shown of a tenant',
      ({ set, log, projector }, tenantId, position) =>
        projectTenant(projectionOf(set, log, programOf(projector)), tenantId, position),
    ],
  ])('is, too, if the log was set back to before what was %s, which a start notices', async (_, show) => {
    jest.replaceProperty(TIMES, 'logDoubtMs', 0);
    const harness = await replayHarness();
    const { log, set, readModels } = harness;
    const [tenantId = ''] = await someTenants(harness);
    await harness.catchUp();
    await show(harness, tenantId, await harness.record(tenantId, updated('lost')));
    await mustHoldEventsOf(log, (await readModels.live())!);
    log.lose(streams.tenant(tenantId), 3);
    harness.history.pop();
    await expect(mustHoldEventsOf(log, { set, control: await set.control() })).rejects.toMatchObject({
      code: 'log_set_back',
    });
    expect((await rebuild(harness, strict)).comparison).toBeUndefined();
    await expectPlain(harness);
  });
});

describe('a rebuild that parks a tenant', () => {
  it('that is not parked in the live set is refused, or accepted on request', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    await harness.record(tenantId, updated('strange'));
    await harness.catchUp();
    await expect(rebuild({ ...harness, projector: linesWithoutStrange }, strict)).rejects.toMatchObject({
      code: 'rebuild_differs',
      message: expect.stringContaining(tenantId),
    });
    expect((await liveOf(harness)).id).toBe(harness.set.id);
    expect((await rebuild({ ...harness, projector: linesWithoutStrange }, accepting)).parked).toBe(1);
    expect(await parkedIn(await liveOf(harness))).toMatchObject([{ tenant_id: tenantId }]);
  });

  it('because events are missing from the log is refused, although its documents cannot be compared', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    await harness.catchUp();
    harness.log.lose(streams.tenant(tenantId), 1);
    await expect(rebuild(harness, strict)).rejects.toMatchObject({ code: 'rebuild_differs' });
    expect((await liveOf(harness)).id).toBe(harness.set.id);
  });

  it('that is parked in the live set as well is switched to', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    harness.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
    await harness.catchUp();
    expect(await rebuild(harness, strict)).toMatchObject({ parked: 0, comparison: { differences: 0 } });
    expect(await parkedIn(await liveOf(harness))).toMatchObject([{ tenant_id: tenantId }]);
  });
});
