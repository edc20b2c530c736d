import { randomUUID } from 'node:crypto';
import { projections } from '../../projections/projections';
import { findTenant } from '../../projections/tenants';
import { pause } from '../../src/async/clock';
import type { EventLog } from '../../src/event-log/event-log';
import { readSetAside, setAside } from '../../src/projecting/set-aside';
import type { Scanner } from '../../src/read-models/read-models';
import { until } from '../support/waiting';
import { lineCollections, linesProjector, plainLines } from './lines';
import { lines, replayHarness, someTenants, type ReplayHarness } from './replay';
import { documentsOf, nth, openProcess, openReadModels, parkedIn, streams, updated } from './harness';

const ACTOR = { type: 'user', id: randomUUID() } as const;
const LONG = 10_000;

const parkedIds = async (generation: Scanner): Promise<readonly string[]> =>
  (await parkedIn(generation)).map(({ tenant_id }) => tenant_id);

const poisoned = async () => {
  const harness = await replayHarness();
  const [tenantId = ''] = await someTenants(harness);
  const eventId = harness.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
  const position = await harness.record(tenantId, updated('waits'));
  return { harness, tenantId, eventId, position };
};

const openServer = async (harness: ReplayHarness, projectors = [lines]) =>
  openProcess(harness.log, await openReadModels(harness.folder), projectors);

const aside = (harness: ReplayHarness, eventId: string, live: Parameters<typeof setAside>[0]['live']) =>
  setAside(
    { ...harness, live },
    { eventId, reason: 'It is paint.', actor: ACTOR, at: new Date().toISOString() },
  );

describe('setting an event aside', () => {
  it('unparks the tenant in the projecting process, within seconds', async () => {
    const { harness, tenantId, eventId, position } = await poisoned();
    const server = await openServer(harness);
    await server.start();
    expect(await server.reached(position, LONG)).toBe(true);
    expect(await parkedIds(server.reader('lines'))).toEqual([tenantId]);
    const session = await openServer(harness);
    await aside(harness, eventId, session.live);
    expect(await session.retryParked()).toBe('asked');
    await until(async () => (await parkedIds(server.reader('lines'))).length === 0);
    expect(await documentsOf(server.reader('lines'), lineCollections)).toEqual(plainLines(harness.history));
    expect(server.warnings).toEqual([]);
  });

  it('unparks it in this process if none is projecting, also in the previous generation', async () => {
    const { harness, eventId } = await poisoned();
    await harness.catchUp();
    await harness.rebuild();
    const session = await openServer(harness);
    await aside(harness, eventId, session.live);
    expect(await session.retryParked()).toBe('done');
    expect(await session.holder()).toBeUndefined();
    for (const number of [1, 2]) {
      const one = await harness.readModels.open(nth(number), lines.collections);
      expect(await parkedIds(one)).toEqual([]);
      expect(await documentsOf(one, lineCollections)).toEqual(plainLines(harness.history));
    }
  });

  it('leaves an event of another tenant alone that has the same id', async () => {
    const harness = await replayHarness();
    const [one = '', two = '', three = ''] = await someTenants(harness);
    const id = randomUUID();
    const bad = { type: 'TenantPainted', data: '{}', id };
    for (const tenantId of [one, two]) harness.log.plant(streams.tenant(tenantId), bad);
    await harness.catchUp();
    const session = await openServer(harness);
    const unparked: string[] = [];
    for (const left of [1, 0]) {
      unparked.push((await aside(harness, id, session.live)).tenantId);
      expect(await session.retryParked()).toBe('done');
      expect(await parkedIds(session.reader('lines'))).toHaveLength(left);
    }
    expect(unparked.toSorted()).toEqual([one, two].toSorted());
    const { event } = await readSetAside(harness);
    expect([one, two, three].map((tenantId) => event('lines', tenantId, id))).toEqual([true, true, false]);
  });

  it('is not lost when the process that was asked dies: the next one carries it out', async () => {
    const { harness, eventId } = await poisoned();
    const { generation } = await harness.catchUp();
    await aside(harness, eventId, [{ projector: lines, generation }]);
    const server = await openServer(harness);
    await server.start();
    await until(async () => (await parkedIds(generation)).length === 0);
    expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(harness.history));
  });

  it('is respected by a rebuild, and the tenant is never parked there again', async () => {
    const { harness, eventId } = await poisoned();
    const live = await harness.catchUp();
    await aside(harness, eventId, [live]);
    await (await openServer(harness)).retryParked();
    expect(await harness.rebuild(lines, { acceptDifferences: false })).toMatchObject({ parked: 0 });
    const { generation } = await harness.live();
    expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(harness.history));
  });

  it('appends an event that names all projections in which the tenant is parked, and no others', async () => {
    const { harness, tenantId, eventId, position } = await poisoned();
    const server = await openServer(harness, [...projections]);
    await server.catchUp(position, LONG);
    const done = await aside(harness, eventId, server.live);
    const projected = ['tenants', 'applications', 'logs', 'usage'];
    expect(done).toEqual({ tenantId, skipped: projected, gapAccepted: [] });
    const data = { eventId, eventTenantId: tenantId, projections: projected, reason: 'It is paint.' };
    const recorded = [];
    for await (const batch of harness.log.readStream(streams.operator())) recorded.push(...batch);
    expect(recorded).toMatchObject([{ type: 'EventSetAside', data, metadata: { actor: ACTOR, version: 1 } }]);
    await server.retryParked();
    for (const { generation } of server.live) expect(await parkedIds(generation)).toEqual([]);
    expect((await findTenant(server.reader('tenants'), tenantId))?.name).toBe('waits');
  });

  it('names only the projection that cannot apply the event', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    const id = randomUUID();
    const data = { applicationId: randomUUID(), name: 'x' };
    await harness.log.record(streams.tenant(tenantId), { type: 'ApplicationRenamed', data, id });
    const server = await openServer(harness, [...projections]);
    await server.catchUp((await harness.log.head())!.position, LONG);
    expect((await aside(harness, id, server.live)).skipped).toEqual(['applications']);
  });

  it('parks the tenant again at the next event that cannot be read', async () => {
    const { harness, tenantId, eventId } = await poisoned();
    const second = harness.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
    await harness.catchUp();
    const session = await openServer(harness);
    await aside(harness, eventId, session.live);
    await session.retryParked();
    expect(await parkedIn(session.reader('lines'))).toMatchObject([
      { tenant_id: tenantId, event_id: second },
    ]);
  });

  it('is refused if no tenant is parked at the event', async () => {
    const { harness, eventId } = await poisoned();
    const server = await openServer(harness);
    await server.catchUp((await harness.log.head())!.position, LONG);
    for (const other of [randomUUID(), ''])
      await expect(aside(harness, other, server.live)).rejects.toMatchObject({ code: 'not_parked' });
    await aside(harness, eventId, server.live);
    await server.retryParked();
    await expect(aside(harness, eventId, server.live)).rejects.toMatchObject({ code: 'not_parked' });
  });

  it('can be done by two at once', async () => {
    const { harness, tenantId, eventId } = await poisoned();
    const [other = ''] = await someTenants(harness, 1);
    const second = harness.log.plant(streams.tenant(other), { type: 'TenantPainted', data: '{}' });
    await harness.catchUp();
    const session = await openServer(harness);
    expect([...(await parkedIds(session.reader('lines')))].toSorted()).toEqual([tenantId, other].toSorted());
    await Promise.all([eventId, second].map((id) => aside(harness, id, session.live)));
    await session.retryParked();
    expect(await parkedIds(session.reader('lines'))).toEqual([]);
  });

  it.each(['no json', '{"projections":[7],"eventId":{}}'])(
    'in an event that cannot be read has no effect and stops nobody: %s',
    async (data) => {
      const { harness, tenantId, position } = await poisoned();
      harness.log.plant(streams.operator(), { type: 'EventSetAside', data });
      const server = await openServer(harness);
      await server.start();
      expect(await server.reached(position, 3_000)).toBe(true);
      expect(await parkedIds(server.reader('lines'))).toEqual([tenantId]);
      expect(server.warnings).toEqual([]);
    },
  );
});

/** Two tenants that a server has parked, and could apply now. */
const repaired = async (logOf = ({ log }: ReplayHarness): EventLog => log, waiting = 0) => {
  const harness = await replayHarness();
  let isBroken = true;
  const projector = linesProjector(({ type }) => isBroken && type === 'TenantUpdated');
  const [one = '', two = ''] = await someTenants(harness, 2);
  await harness.record(one, ...Array.from({ length: waiting }, (_, i) => updated(`${i}`)), updated('waits'));
  const last = await harness.record(two, updated('last'));
  const server = await openProcess(logOf(harness), await openReadModels(harness.folder), [projector]);
  await server.start();
  expect(await server.reached(last, LONG)).toBe(true);
  const parked = async () => (await parkedIds(server.reader('lines'))).toSorted();
  expect(await parked()).toEqual([one, two].toSorted());
  isBroken = false;
  const areFree = async (): Promise<void> => {
    await until(async () => (await parked()).length === 0, LONG);
    expect(await documentsOf(server.reader('lines'), lineCollections)).toEqual(plainLines(harness.history));
  };
  return { harness, projector, server, one, two, parked, areFree };
};

describe('a request to retry', () => {
  it('one tenant leaves the others parked', async () => {
    const { harness, projector, server, one, two, parked, areFree } = await repaired();
    const session = await openServer(harness, [projector]);
    expect(await session.retryParked(one)).toBe('asked');
    await until(async () => !(await parked()).includes(one));
    expect(await server.reached(await harness.record(one, updated('since then')), LONG)).toBe(true);
    expect(await parked()).toEqual([two]);
    expect(await session.retryParked(two)).toBe('asked');
    await areFree();
  });

  it('another tenant does not end the retry of one with many waiting events', async () => {
    let onRead = async (): Promise<void> => undefined;
    const slow = ({ log }: ReplayHarness): EventLog => ({
      ...log,
      readTenant: async function* (...from) {
        await onRead();
        await pause(500);
        yield* log.readTenant(...from);
      },
    });
    const { harness, one, two, areFree } = await repaired(slow, 600);
    onRead = async () => {
      onRead = async () => undefined;
      await harness.readModels.requestRetry(two);
    };
    await harness.readModels.requestRetry(one);
    await areFree();
  });

  it('several tenants at once retries each of them', async () => {
    const { harness, one, two, areFree } = await repaired();
    await Promise.all([one, two].map((tenantId) => harness.readModels.requestRetry(tenantId)));
    await areFree();
  });
});
