import * as fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { findLog } from '../../projections/logs';
import { projections } from '../../projections/projections';
import { findTenant } from '../../projections/tenants';
import type { StreamKind } from '../../src/domain/events';
import { readSetAside } from '../../src/event-log/codec';
import { setAside } from '../../src/projecting/parked-tenants';
import { closeAll } from '../support/closing';
import { eventsOf } from '../support/events';
import { seed, seeded } from '../support/property';
import {
  created,
  documentsOf,
  lastRevision,
  parkedIn,
  poisoned,
  programOf,
  projectAll,
  replayHarness,
  someTenants,
  streams,
  updated,
  type ReplayHarness,
} from './harness';
import { lineCollections, plainLines } from './lines';

const ACTOR = { type: 'user', id: randomUUID() } as const;

const aside = (harness: ReplayHarness, eventId: string) =>
  setAside(harness, { eventId, reason: 'It is paint.', actor: ACTOR, at: new Date().toISOString() });

const parkedIds = async ({ set }: ReplayHarness): Promise<readonly string[]> =>
  (await parkedIn(set)).map(({ tenant_id }) => tenant_id);

const expectPlain = async ({ set, history }: ReplayHarness): Promise<void> => {
  expect(await documentsOf(set, lineCollections)).toEqual(plainLines(history));
  expect((await set.control()).marks).toBe(0);
};

describe('setting an event aside', () => {
  it('is recorded, and frees the tenant when it is retried', async () => {
    const { harness, tenantId, eventId } = await poisoned();
    expect(await aside(harness, eventId)).toMatchObject({ tenant_id: tenantId, cause: 'bad_event' });
    const data = { eventId, eventTenantId: tenantId, reason: 'It is paint.' };
    expect(await eventsOf(harness.log.readStream(streams.operator()))).toMatchObject([
      { type: 'EventSetAside', data, metadata: { actor: ACTOR, version: 1 } },
    ]);
    expect(await parkedIds(harness)).toEqual([tenantId]);
    await harness.retry();
    await harness.catchUp();
    await expectPlain(harness);
  });

  it('keeps the place of the event for all projectors', async () => {
    const { harness, tenantId, eventId } = await poisoned(projections);
    const all = await eventsOf(harness.log.readAll());
    expect(await findLog(harness.set, tenantId, eventId)).toBeUndefined();
    await aside(harness, eventId);
    await harness.retry();
    const { position } = all.find(({ id }) => id === eventId)!;
    expect((await findLog(harness.set, tenantId, eventId))?.position).toBe(position);
    expect((await findTenant(harness.set, tenantId))?.name).toBe('waits');
  });

  it('leaves an event of another tenant alone that has the same id', async () => {
    const harness = await replayHarness();
    const [one = '', two = '', three = ''] = await someTenants(harness);
    const bad = { type: 'TenantPainted', data: '{}', id: randomUUID() };
    for (const tenantId of [one, two]) harness.log.plant(streams.tenant(tenantId), bad);
    await harness.catchUp();
    const freed: string[] = [];
    for (const left of [1, 0]) {
      freed.push((await aside(harness, bad.id)).tenant_id);
      await harness.retry();
      expect(await parkedIds(harness)).toHaveLength(left);
    }
    expect(freed.toSorted()).toEqual([one, two].toSorted());
    const { event } = await readSetAside(harness);
    expect([one, two, three].map((tenantId) => event(tenantId, bad.id))).toEqual([true, true, false]);
  });

  it('is refused if no tenant is parked at the event', async () => {
    const { harness, eventId } = await poisoned();
    await expect(aside(harness, randomUUID())).rejects.toMatchObject({ code: 'not_parked' });
    await aside(harness, eventId);
    await harness.retry();
    await expect(aside(harness, eventId)).rejects.toMatchObject({ code: 'not_parked' });
  });

  it.each(['no json', '{"eventId":{}}'])(
    'in an event that cannot be read has no effect and stops nobody: %s',
    async (data) => {
      const { harness, tenantId } = await poisoned();
      harness.log.plant(streams.operator(), { type: 'EventSetAside', data });
      await harness.catchUp();
      await harness.retry();
      expect(await parkedIds(harness)).toEqual([tenantId]);
      expect((await harness.set.control()).to?.position).toBe((await harness.log.head())?.position);
    },
  );
});

describe('a gap in the revisions of a stream', () => {
  /** Two tenants with five events in each stream; the first one loses some of them. */
  const withGap = async (kind: StreamKind, ...lost: readonly number[]) => {
    const harness = await replayHarness(projections);
    const [tenantId, other] = [randomUUID(), randomUUID()];
    for (const tenant of [tenantId, other])
      for (const name of ['a', 'b', 'c', 'd', 'e']) {
        await harness.log.record(streams.tenant(tenant), name === 'a' ? created() : updated(name));
        await harness.log.record(streams.activity(tenant), {
          type: 'TokenCreated',
          data: { entityId: randomUUID() },
        });
      }
    harness.log.lose(streams[kind](tenantId), ...lost);
    return { harness, tenantId, other };
  };

  it.each<[StreamKind, readonly number[], string]>([
    ['tenant', [2], 'revision 2'],
    ['tenant', [0, 1], 'revisions 0 to 1'],
    ['activity', [1, 2, 3], 'revisions 1 to 3'],
  ])('%s %j parks its tenant and no other', async (kind, lost, named) => {
    const { harness, tenantId, other } = await withGap(kind, ...lost);
    await harness.catchUp();
    const stream = streams[kind](tenantId);
    expect(await parkedIn(harness.set)).toMatchObject([
      {
        tenant_id: tenantId,
        cause: 'missing_events',
        reason: `Events are missing from the log: the stream ${stream} lacks ${named} before this event.`,
      },
    ]);
    expect(await lastRevision(harness.set, tenantId, kind)).toBe((lost[0] as number) - 1);
    expect((await findTenant(harness.set, other))?.name).toBe('e');
    await harness.retry(() => true);
    expect(await parkedIn(harness.set)).toHaveLength(1);
  });

  it('that is accepted is skipped, and the next event applied', async () => {
    const { harness, tenantId } = await withGap('tenant', 1, 2);
    await harness.catchUp();
    const [parked] = await parkedIn(harness.set);
    expect(await aside(harness, parked?.event_id ?? '')).toEqual(parked);
    expect(await eventsOf(harness.log.readStream(streams.operator()))).toMatchObject([
      { type: 'GapAccepted', data: { eventId: parked?.event_id, eventTenantId: tenantId } },
    ]);
    await harness.retry();
    expect(await parkedIn(harness.set)).toEqual([]);
    expect((await findTenant(harness.set, tenantId))?.name).toBe('e');
    expect(await lastRevision(harness.set, tenantId, 'tenant')).toBe(4);
  });

  it('at the end of a stream is detected when the stream continues', async () => {
    const { harness, tenantId } = await withGap('tenant');
    await harness.catchUp();
    const stream = streams.tenant(tenantId);
    harness.log.lose(stream, 3, 4);
    await harness.log.record(stream, updated('again'), updated('and again'));
    await harness.catchUp();
    const [parked] = await parkedIn(harness.set);
    expect(parked?.reason).toBe(
      `Events are missing from the log: the stream ${stream} continues with revision 3, although it had reached revision 4.`,
    );
    await aside(harness, parked?.event_id ?? '');
    await harness.retry();
    expect((await findTenant(harness.set, tenantId))?.name).toBe('and again');
  });

  it(
    seeded(
      'parks the tenant at the first event after it, wherever commits end and however often it is retried',
    ),
    async () => {
      const events = fc.array(fc.record({ tenant: fc.nat(3), isLost: fc.boolean() }), { maxLength: 60 });
      const property = fc.asyncProperty(events, fc.integer({ min: 1, max: 7 }), async (acts, maxEvents) => {
        const harness = await replayHarness();
        const tenants = await someTenants(harness, 4);
        for (const { tenant } of acts) await harness.record(tenants[tenant] as string, updated('x'));
        const revisions = new Map<string, number>();
        const gone = new Set<string>();
        acts.forEach(({ tenant, isLost }, i) => {
          const tenantId = tenants[tenant] as string;
          const revision = (revisions.get(tenantId) ?? 2) + 1;
          revisions.set(tenantId, revision);
          if (!isLost) return;
          harness.log.lose(streams.tenant(tenantId), revision);
          gone.add(harness.history[12 + i]?.position ?? '');
        });
        const lacking = new Set<string>();
        const left = harness.history.flatMap((event) => {
          if (gone.has(event.position)) lacking.add(event.tenantId);
          return gone.has(event.position) ? [] : [{ ...event, bad: lacking.has(event.tenantId) }];
        });
        await projectAll(harness.set, harness.log, programOf(), { maxEvents: () => maxEvents });
        await harness.retry(() => true);
        await harness.catchUp();
        expect(await documentsOf(harness.set, lineCollections)).toEqual(plainLines(left));
        const stopped = new Set(left.filter(({ bad }) => bad).map(({ tenantId }) => tenantId));
        expect(new Set(await parkedIds(harness))).toEqual(stopped);
        expect((await harness.set.control()).marks).toBe(stopped.size);
        await closeAll();
      });
      await fc.assert(property, { seed, numRuns: 15, endOnFailure: true });
    },
    60_000,
  );
});
