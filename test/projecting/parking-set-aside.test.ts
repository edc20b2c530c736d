import { randomUUID } from 'node:crypto';
import { projections } from '../../projections/projections';
import { findTenant } from '../../projections/tenants';
import { parkedTenants, setAside } from '../../src/projecting/parking';
import type { Scanner } from '../../src/read-models/read-models';
import { until } from '../support/waiting';
import { lineCollections, linesProjector, plainLines } from './lines';
import { lines, replaying, someTenants, type Replaying } from './replay';
import { documentsOf, openProcess, openReadModels, streams, updated } from './world';

const ACTOR = { type: 'user', id: randomUUID() } as const;
const LONG = 10_000;

const parkedIn = async (generation: Scanner): Promise<readonly string[]> => {
  const ids: string[] = [];
  for await (const tenant of parkedTenants(generation)) ids.push(tenant.tenant_id);
  return ids;
};

const poisoned = async () => {
  const world = await replaying();
  const [tenantId = ''] = await someTenants(world);
  const eventId = world.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
  const position = await world.record(tenantId, updated('waits'));
  return { world, tenantId, eventId, position };
};

const process = async (world: Replaying, projectors = [lines]) =>
  openProcess(world.log, await openReadModels(world.folder), projectors);

const aside = (world: Replaying, eventId: string, live: Parameters<typeof setAside>[0]['live']) =>
  setAside(
    { ...world, live },
    { eventId, reason: 'It is paint.', actor: ACTOR, at: new Date().toISOString() },
  );

describe('setting an event aside', () => {
  it('heals the tenant by whoever projects, within seconds', async () => {
    const { world, tenantId, eventId, position } = await poisoned();
    const server = await process(world);
    await server.start();
    expect(await server.reached(position, LONG)).toBe(true);
    expect(await parkedIn(server.reader('lines'))).toEqual([tenantId]);
    const session = await process(world);
    await aside(world, eventId, session.live);
    expect(await session.retryParked()).toBe('asked');
    await until(async () => (await parkedIn(server.reader('lines'))).length === 0);
    expect(await documentsOf(server.reader('lines'), lineCollections)).toEqual(plainLines(world.history));
    expect(server.warnings).toEqual([]);
  });

  it('heals it here where nobody projects, also in the generation before', async () => {
    const { world, eventId } = await poisoned();
    await world.catchUp();
    await world.rebuild();
    const session = await process(world);
    await aside(world, eventId, session.live);
    expect(await session.retryParked()).toBe('done');
    expect(await session.holder()).toBeUndefined();
    for (const generation of [1, 2]) {
      const id = { projection: 'lines', version: 1, generation };
      const one = await world.readModels.open(id, lines.collections, await world.log.identity());
      expect(await parkedIn(one)).toEqual([]);
      expect(await documentsOf(one, lineCollections)).toEqual(plainLines(world.history));
    }
  });

  it('is not lost when the process that was asked dies: the next one obeys', async () => {
    const { world, eventId } = await poisoned();
    const { generation } = await world.catchUp();
    await aside(world, eventId, [{ projector: lines, generation }]);
    const server = await process(world);
    await server.start();
    await until(async () => (await parkedIn(generation)).length === 0);
    expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(world.history));
  });

  it('is obeyed by a rebuild, and reads never park the tenant again', async () => {
    const { world, eventId } = await poisoned();
    const live = await world.catchUp();
    await aside(world, eventId, [live]);
    await (await process(world)).retryParked();
    expect(await world.rebuild(lines, { ifEqual: true })).toMatchObject({ parked: 0 });
    const { generation } = await world.live();
    expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(world.history));
  });

  it('is an event that names all projections in which the tenant is parked, and no others', async () => {
    const { world, tenantId, eventId, position } = await poisoned();
    const server = await process(world, [...projections]);
    await server.catchUp(position, LONG);
    const done = await aside(world, eventId, server.live);
    const projected = ['tenants', 'applications', 'logs', 'usage'];
    expect(done).toEqual({ tenantId, passedOver: projected, gapAccepted: [] });
    const data = { eventId, eventTenantId: tenantId, projections: projected, reason: 'It is paint.' };
    const recorded = [];
    for await (const batch of world.log.readStream(streams.operator())) recorded.push(...batch);
    expect(recorded).toMatchObject([{ type: 'EventSetAside', data, metadata: { actor: ACTOR, version: 1 } }]);
    await server.retryParked();
    for (const { generation } of server.live) expect(await parkedIn(generation)).toEqual([]);
    expect((await findTenant(server.reader('tenants'), tenantId))?.name).toBe('waits');
  });

  it('names only the projection that cannot take it', async () => {
    const world = await replaying();
    const [tenantId = ''] = await someTenants(world);
    const id = randomUUID();
    const data = { applicationId: randomUUID(), name: 'x' };
    await world.log.record(streams.tenant(tenantId), { type: 'ApplicationRenamed', data, id });
    const server = await process(world, [...projections]);
    await server.catchUp((await world.log.head())!.position, LONG);
    expect((await aside(world, id, server.live)).passedOver).toEqual(['applications']);
  });

  it('parks the tenant anew at the next event that cannot be read', async () => {
    const { world, tenantId, eventId } = await poisoned();
    const second = world.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
    await world.catchUp();
    const session = await process(world);
    await aside(world, eventId, session.live);
    await session.retryParked();
    for await (const tenant of parkedTenants(session.reader('lines'))) expect(tenant.event_id).toBe(second);
    expect(await parkedIn(session.reader('lines'))).toEqual([tenantId]);
  });

  it('is refused where nobody is parked at the event', async () => {
    const { world, eventId } = await poisoned();
    const server = await process(world);
    await server.catchUp((await world.log.head())!.position, LONG);
    for (const other of [randomUUID(), ''])
      await expect(aside(world, other, server.live)).rejects.toMatchObject({ code: 'not_parked' });
    await aside(world, eventId, server.live);
    await server.retryParked();
    await expect(aside(world, eventId, server.live)).rejects.toMatchObject({ code: 'not_parked' });
  });

  it('may be done by two at once', async () => {
    const { world, tenantId, eventId } = await poisoned();
    const [other = ''] = await someTenants(world, 1);
    const second = world.log.plant(streams.tenant(other), { type: 'TenantPainted', data: '{}' });
    await world.catchUp();
    const session = await process(world);
    expect([...(await parkedIn(session.reader('lines')))].toSorted()).toEqual([tenantId, other].toSorted());
    await Promise.all([eventId, second].map((id) => aside(world, id, session.live)));
    await session.retryParked();
    expect(await parkedIn(session.reader('lines'))).toEqual([]);
  });

  it.each(['no json', '{}', 'null', '{"projections":7}', '{"projections":[7],"eventId":{}}'])(
    'that cannot be read sets nothing aside and stops nobody: %s',
    async (data) => {
      const { world, tenantId, position } = await poisoned();
      world.log.plant(streams.operator(), { type: 'EventSetAside', data });
      const server = await process(world);
      await server.start();
      expect(await server.reached(position, 3_000)).toBe(true);
      expect(await parkedIn(server.reader('lines'))).toEqual([tenantId]);
      expect(server.warnings).toEqual([]);
    },
  );
});

describe('asking for another try', () => {
  it('of one tenant leaves the others where they are', async () => {
    const world = await replaying();
    let isBroken = true;
    const projector = linesProjector(({ type }) => isBroken && type === 'TenantUpdated');
    const [one = '', two = ''] = await someTenants(world, 2);
    const server = await process(world, [projector]);
    await server.start();
    const session = await process(world, [projector]);
    const parked = async () => (await parkedIn(server.reader('lines'))).toSorted();
    await until(async () => (await parked()).length === 2);
    isBroken = false;
    expect(await session.retryParked(one)).toBe('asked');
    await until(async () => !(await parked()).includes(one));
    expect(await server.reached(await world.record(one, updated('since then')), LONG)).toBe(true);
    expect(await parked()).toEqual([two]);
    expect(await session.retryParked(two)).toBe('asked');
    await until(async () => (await parked()).length === 0);
    expect(await documentsOf(server.reader('lines'), lineCollections)).toEqual(plainLines(world.history));
  });
});
