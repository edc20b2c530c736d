import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { projections } from '../../projections/projections';
import { findTenant } from '../../projections/tenants';
import type { StreamKind } from '../../src/domain/events';
import { retryDue } from '../../src/projecting/retry-parked';
import { setAside } from '../../src/projecting/set-aside';
import { batchOf } from '../../src/projecting/batch';
import { project, runInto } from '../../src/projecting/projection-run';
import { lastRevision } from '../../src/projecting/stream-revisions';
import { verify } from '../../src/projecting/verify';
import { closeAll } from '../support/closing';
import { freshFolder } from '../support/folders';
import { seed, seeded } from '../support/property';
import { lineCollections, plainLines } from './lines';
import { lines, projectInto, replayHarness, someTenants, type ReplayHarness } from './replay';
import {
  created,
  documentsOf,
  openProcess,
  openReadModels,
  parkedIn,
  streams,
  updated,
  type TestLog,
} from './harness';

const ACTOR = { type: 'user', id: randomUUID() } as const;
const LONG = 10_000;

const reasonFor = (stream: string, named: string): string =>
  `Events are missing from the log: the stream ${stream} lacks ${named} before this event.`;

const fact = () => ({ type: 'TokenCreated', data: { entityId: randomUUID() } });

/** Two tenants with five events in each stream; the first one loses some of them. */
const withGap = async (kind: StreamKind, ...lost: readonly number[]) => {
  const harness = await replayHarness();
  const [tenantId, other] = [randomUUID(), randomUUID()];
  for (const tenant of [tenantId, other])
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      await harness.log.record(streams.tenant(tenant), name === 'a' ? created() : updated(name));
      await harness.log.record(streams.activity(tenant), fact());
    }
  harness.log.lose(streams[kind](tenantId), ...lost);
  return { harness, tenantId, other };
};

const opened = async (harness: ReplayHarness) =>
  openProcess(harness.log, await openReadModels(harness.folder), [...projections]);

const caughtUp = async (harness: ReplayHarness) => {
  const session = await opened(harness);
  expect(await session.catchUp((await harness.log.head())?.position ?? '', LONG)).toBe(true);
  return session;
};

const eventAt = async (log: TestLog, stream: string, revision: number): Promise<string> => {
  for await (const batch of log.readStream(stream, revision - 1)) return batch[0]?.id ?? '';
  throw new Error(`There is no revision ${revision}.`);
};

const accept = (
  harness: ReplayHarness,
  session: Pick<Awaited<ReturnType<typeof opened>>, 'live'>,
  eventId: string,
): ReturnType<typeof setAside> =>
  setAside(
    { ...harness, live: session.live },
    { eventId, reason: 'It is lost.', actor: ACTOR, at: new Date().toISOString() },
  );

const verified = async (harness: ReplayHarness, projector = lines, tenantId?: string) =>
  verify(harness, await openReadModels(freshFolder()), await harness.live(projector), {
    ...(tenantId === undefined ? {} : { tenantId }),
    onDifference: () => undefined,
    onProgress: () => undefined,
  });

describe('a gap in a stream', () => {
  it.each<[StreamKind, readonly number[], number, string, readonly string[]]>([
    ['tenant', [2], 3, 'revision 2', ['tenants', 'applications', 'logs', 'usage']],
    ['tenant', [0], 1, 'revision 0', ['tenants', 'applications', 'logs', 'usage']],
    ['tenant', [1, 2, 3], 4, 'revisions 1 to 3', ['tenants', 'applications', 'logs', 'usage']],
    ['activity', [0, 1], 2, 'revisions 0 to 1', ['logs', 'usage']],
  ])('in the %s stream, %j, parks its tenant at %i: %s, in %j', async (kind, lost, next, named, where) => {
    const { harness, tenantId, other } = await withGap(kind, ...lost);
    const session = await caughtUp(harness);
    const stream = streams[kind](tenantId);
    const expected = {
      tenant_id: tenantId,
      event_id: await eventAt(harness.log, stream, next),
      cause: 'missing_events',
      reason: reasonFor(stream, named),
    };
    for (const { projector, generation } of session.live) {
      const parked = await parkedIn(generation);
      expect(parked).toMatchObject(where.includes(projector.name) ? [expected] : []);
      expect(await lastRevision(generation.reader, other, 'tenant')).toBe(4);
    }
    expect((await findTenant(session.reader('tenants'), other))?.name).toBe('e');
    const report = await verified(
      harness,
      projections.find(({ name }) => name === 'logs'),
    );
    expect(report).toMatchObject({ differences: 0, parked: [tenantId] });
    expect(report.gaps).toEqual([
      { tenant_id: tenantId, event_id: expected.event_id, reason: expected.reason },
    ]);
  });

  it('keeps its tenant parked however often it is retried, since the same time', async () => {
    const { harness } = await withGap('tenant', 2);
    const session = await caughtUp(harness);
    const before = await parkedIn(session.reader('tenants'));
    expect(await session.retryParked()).toBe('done');
    expect(await parkedIn(session.reader('tenants'))).toEqual(before);
  });

  it('that is accepted is skipped and the next event applied, and likewise in every rebuild and verify', async () => {
    const { harness, tenantId } = await withGap('tenant', 1, 2);
    const session = await caughtUp(harness);
    const eventId = await eventAt(harness.log, streams.tenant(tenantId), 3);
    const all = ['tenants', 'applications', 'logs', 'usage'];
    expect(await accept(harness, session, eventId)).toEqual({ tenantId, skipped: [], gapAccepted: all });
    const written = [];
    for await (const batch of harness.log.readStream(streams.operator())) written.push(...batch);
    expect(written).toMatchObject([
      {
        type: 'GapAccepted',
        data: { eventId, eventTenantId: tenantId, projections: all, reason: 'It is lost.' },
        metadata: { actor: ACTOR, version: 1 },
      },
    ]);
    await session.retryParked();
    for (const { generation } of session.live) expect(await parkedIn(generation)).toEqual([]);
    expect((await findTenant(session.reader('tenants'), tenantId))?.name).toBe('e');
    for (const projector of projections) {
      expect(await verified(harness, projector)).toMatchObject({ differences: 0, parked: [], gaps: [] });
      const rebuilt = await harness.rebuild(projector, { acceptDifferences: false });
      expect(rebuilt).toMatchObject({ parked: 0, comparison: { differences: 0 } });
    }
  });

  it('before a bad event is accepted first, and then the event is set aside', async () => {
    const { harness, tenantId } = await withGap('tenant');
    const stream = streams.tenant(tenantId);
    const eventId = harness.log.plant(stream, { type: 'TenantPainted', data: '{}' });
    await harness.log.record(stream, updated('last'));
    harness.log.lose(stream, 4);
    const session = await caughtUp(harness);
    const parked = async () => parkedIn(session.reader('tenants'));
    expect(await parked()).toMatchObject([{ event_id: eventId, cause: 'missing_events' }]);
    await accept(harness, session, eventId);
    await session.retryParked();
    expect(await parked()).toMatchObject([
      { event_id: eventId, cause: 'bad_event', reason: 'The event type TenantPainted is unknown.' },
    ]);
    expect(await accept(harness, session, eventId)).toMatchObject({ gapAccepted: [], tenantId });
    await session.retryParked();
    expect(await parked()).toEqual([]);
    expect((await findTenant(session.reader('tenants'), tenantId))?.name).toBe('last');
  });

  it('after an accepted one parks the tenant again', async () => {
    const { harness, tenantId } = await withGap('activity', 1, 3);
    const session = await caughtUp(harness);
    const stream = streams.activity(tenantId);
    await accept(harness, session, await eventAt(harness.log, stream, 2));
    await session.retryParked();
    const second = {
      event_id: await eventAt(harness.log, stream, 4),
      reason: reasonFor(stream, 'revision 3'),
    };
    for (const name of ['logs', 'usage'])
      expect(await parkedIn(session.reader(name))).toMatchObject([second]);
    await accept(harness, session, second.event_id);
    await session.retryParked();
    for (const name of ['logs', 'usage']) expect(await parkedIn(session.reader(name))).toEqual([]);
  });

  it('is not reported where an event was set aside', async () => {
    const { harness, tenantId } = await withGap('tenant');
    const eventId = harness.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
    await harness.log.record(streams.tenant(tenantId), updated('last'));
    const session = await caughtUp(harness);
    await accept(harness, session, eventId);
    await session.retryParked();
    for (const { generation } of session.live) {
      expect(await parkedIn(generation)).toEqual([]);
      expect(await lastRevision(generation.reader, tenantId, 'tenant')).toBe(6);
    }
  });

  it('left by events removed after they were projected is reported by verify, and parks the tenant in a rebuild', async () => {
    const { harness, tenantId } = await withGap('tenant');
    const session = await caughtUp(harness);
    const stream = streams.tenant(tenantId);
    harness.log.lose(stream, 2);
    const logs = projections.find(({ name }) => name === 'logs');
    const gap = { tenant_id: tenantId, reason: reasonFor(stream, 'revision 2') };
    for (const only of [undefined, tenantId])
      expect(await verified(harness, logs, only)).toMatchObject({ differences: 0, parked: [], gaps: [gap] });
    await expect(harness.rebuild(logs, { acceptDifferences: false })).rejects.toMatchObject({
      code: 'rebuild_differs',
    });
    expect(await parkedIn(session.reader('logs'))).toEqual([]);
  });

  it('at the end of a stream is detected when the stream continues', async () => {
    const { harness, tenantId } = await withGap('tenant');
    await caughtUp(harness);
    const stream = streams.tenant(tenantId);
    harness.log.lose(stream, 3, 4);
    await harness.log.record(stream, updated('again'), updated('and again'));
    const session = await caughtUp(harness);
    const [parked] = await parkedIn(session.reader('tenants'));
    expect(parked).toMatchObject({
      cause: 'missing_events',
      reason: `Events are missing from the log: the stream ${stream} continues with revision 3, although it had reached revision 4.`,
    });
    await accept(harness, session, parked?.event_id ?? '');
    await session.retryParked();
    expect(await parkedIn(session.reader('tenants'))).toEqual([]);
    expect((await findTenant(session.reader('tenants'), tenantId))?.name).toBe('and again');
  });

  it(
    seeded(
      'parks the tenant at the first event after it, wherever batches end and however often it restarts',
    ),
    async () => {
      const history = fc.array(fc.record({ tenant: fc.nat(3), isLost: fc.boolean() }), { maxLength: 60 });
      const property = fc.asyncProperty(history, fc.integer({ min: 1, max: 7 }), async (events, size) => {
        const harness = await replayHarness();
        const tenants = await someTenants(harness, 4);
        for (const { tenant } of events) await harness.record(tenants[tenant] as string, updated('x'));
        const revisions = new Map<string, number>();
        const gone = new Set<string>();
        events.forEach(({ tenant, isLost }, i) => {
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
        const inPieces = async function* (after: string | undefined) {
          for await (const batch of harness.log.readAll({ after }))
            for (let i = 0; i < batch.length; i += size) yield batchOf(batch.slice(i, i + size), streams);
        };
        const { generation } = await harness.live();
        const run = await runInto(harness, lines, generation);
        await project(run, inPieces);
        await retryDue(run, () => true);
        await projectInto(harness, { projector: lines, generation });
        expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(left));
        const stopped = new Set(left.filter(({ bad }) => bad).map(({ tenantId }) => tenantId));
        expect(new Set((await parkedIn(generation)).map(({ tenant_id }) => tenant_id))).toEqual(stopped);
        await closeAll();
      });
      await fc.assert(property, { seed, numRuns: 15, endOnFailure: true });
    },
    60_000,
  );
});
