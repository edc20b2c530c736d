import { randomUUID } from 'node:crypto';
import { projections } from '../../projections/projections';
import { PROGRESS, compose, change, type Change, type Document } from '../../projections/projector';
import { findTenant } from '../../projections/tenants';
import type { Recorded } from '../../src/domain/events';
import { retryDue } from '../../src/projecting/parked-tenants';
import type { ParkedTenant, ReadModelSet } from '../../src/read-models/read-models';
import {
  created,
  documentsOf,
  firstSet,
  freshPlace,
  lastRevision,
  lines,
  linesWithoutStrange,
  openLog,
  parkedIn,
  programOf,
  projectAll,
  projectionOf,
  retryAll,
  streams,
  updated,
} from './harness';
import { lineCollections, linesProjector } from './lines';

const json = JSON.stringify;
const all = compose(projections);

const projected = async (projector = all) => {
  const log = await openLog();
  const set = await firstSet(freshPlace(projector).open());
  return { log, set, bad: randomUUID(), good: randomUUID() };
};

/** Bad events, as rows of the log, and the reason reported for each. `codec.test` has every reason to find one bad. */
const badEvents: readonly [string, { type: string; data: string; metadata?: string }, RegExp][] = [
  ['data that is not JSON', { type: 'TenantUpdated', data: '{"name":' }, /data is not JSON/],
  ['an unknown type', { type: 'TenantPainted', data: '{}' }, /TenantPainted is unknown/],
  [
    'an event whose document is missing',
    {
      type: 'ApplicationUpdated',
      data: json({ applicationId: randomUUID(), name: 'x', permissions: [] }),
    },
    /applications\/.* is missing/,
  ],
  [
    'half of a character in its data',
    {
      type: 'TenantUpdated',
      data: '{"name":"\\ud800","settings":{"fingerprintTokens":false,"deduplicateTokens":false}}',
    },
    /not well-formed/,
  ],
  [
    'half of a character in its metadata',
    { type: 'TenantDeleted', data: '{}', metadata: '{"version":1,"traceId":"\\ud800"}' },
    /not well-formed/,
  ],
];

describe('a bad event', () => {
  it.each(badEvents)('parks its tenant and no other: %s', async (_, row, reason) => {
    const { log, set, bad, good } = await projected();
    await log.record(streams.tenant(bad), created('Bad'));
    const eventId = log.plant(streams.tenant(bad), row);
    const { position } = (await log.head())!;
    await log.record(streams.tenant(bad), updated('waits'));
    await log.record(streams.tenant(good), created('Good'), updated('goes on'));
    await projectAll(set, log, programOf(all));
    expect(await parkedIn(set)).toEqual([
      {
        tenant_id: bad,
        event_id: eventId,
        event_type: row.type,
        cause: 'bad_event',
        position,
        recorded_at: expect.stringMatching(/Z$/),
        reason: expect.stringMatching(reason),
        since: '2026-01-01T00:00:00.000Z',
        program: '1',
      },
    ]);
    expect((await set.control()).marks).toBe(1);
    expect((await findTenant(set, bad))?.name).toBe('Bad');
    expect((await findTenant(set, good))?.name).toBe('goes on');
    expect(await lastRevision(set, bad, 'tenant')).toBe(0);
    expect(await lastRevision(set, good, 'tenant')).toBe(1);
  });

  it('in the activity stream parks the tenant too, since it has one position', async () => {
    const { log, set, bad } = await projected();
    await log.record(streams.tenant(bad), created('Bad'));
    log.plant(streams.activity(bad), { type: 'TokenPainted', data: 'no json' });
    await log.record(streams.tenant(bad), updated('after'));
    await projectAll(set, log, programOf(all));
    expect(await parkedIn(set)).toHaveLength(1);
    expect((await findTenant(set, bad))?.name).toBe('Bad');
    expect(await lastRevision(set, bad, 'activity')).toBe(-1);
  });

  it('changes nothing, whatever its changes before the failure were', async () => {
    const { log, set, bad } = await projected(lines);
    const changes = (event: Recorded): readonly Change[] => [
      change('heads', 'all', () => ({ at: event.position })),
      change('rows', 'new', () => ({ at: event.position })),
      change('heads', 'all', (head: Document | undefined) => {
        if (event.type === 'TenantUpdated') throw new Error(`Not on top of ${json(head)}.`);
        return head;
      }),
    ];
    const failing = compose([
      { ...linesProjector(), on: { TenantCreated: changes, TenantUpdated: changes } },
    ]);
    const { position } = await log.record(streams.tenant(bad), created());
    const next = await log.record(streams.tenant(bad), updated('strange'));
    await projectAll(set, log, programOf(failing));
    expect(await parkedIn(set)).toMatchObject([{ reason: `Not on top of {"at":"${next.position}"}.` }]);
    expect(await documentsOf(set, lineCollections)).toEqual({
      [`${bad} heads all`]: { at: position },
      [`${bad} rows new`]: { at: position },
    });
  });

  it('names its type and reason in text that every store can hold', async () => {
    const { log, set, bad } = await projected(lines);
    await log.record(streams.tenant(bad), created());
    log.plant(streams.tenant(bad), { type: 'TenantPainted', data: '{}' });
    const odd = {
      ...log,
      readAll: async function* (from?: object) {
        for await (const batch of log.readAll(from))
          yield batch.map((event) =>
            event.type === 'TenantPainted' ? { ...event, type: 'Painted\ud800' } : event,
          );
      },
    };
    await projectAll(set, odd);
    const [parked] = await parkedIn(set);
    expect([parked?.event_type.isWellFormed(), parked?.reason.isWellFormed()]).toEqual([true, true]);
  });
});

describe('a parked tenant', () => {
  const [first, second] = [programOf(linesWithoutStrange, '1'), programOf(lines, '2')];

  const prepared = async () => {
    const { log, set, ...tenants } = await projected(lines);
    /** The documents of a clean fold by a program that can read everything. */
    const clean = async (): Promise<Record<string, Document>> => {
      const other = await firstSet(freshPlace(lines).open());
      await projectAll(other, log);
      return documentsOf(other, [...lineCollections, PROGRESS.name]);
    };
    const expectClean = async (): Promise<void> => {
      expect(await documentsOf(set, [...lineCollections, PROGRESS.name])).toEqual(await clean());
      expect(await parkedIn(set)).toEqual([]);
      expect((await set.control()).marks).toBe(0);
    };
    const countOf = async (tenantId: string): Promise<unknown> =>
      (await documentsOf(set, ['heads']))[`${tenantId} heads all`]?.['count'];
    return { log, set, ...tenants, expectClean, countOf };
  };

  it('stays parked when the same program restarts', async () => {
    const { log, set, bad } = await prepared();
    await log.record(streams.tenant(bad), created(), updated('strange'));
    await projectAll(set, log, first);
    const parked = await parkedIn(set);
    await log.record(streams.tenant(bad), updated('waits'));
    await retryAll(set, log, programOf(lines, '1'));
    await projectAll(set, log, programOf(lines, '1'));
    expect(await parkedIn(set)).toEqual(parked);
    expect(parked).toHaveLength(1);
  });

  it.each([1, 512, 513, 1_300])(
    'with %i events waiting is freed by a newer program, in order',
    async (waiting) => {
      const { log, set, bad, good, expectClean, countOf } = await prepared();
      await log.record(streams.tenant(bad), created());
      await log.record(streams.tenant(good), created(), updated('strange'));
      const many = Array.from({ length: waiting - 1 }, (_, i) => updated(`${i}`));
      await log.record(streams.tenant(bad), updated('strange'), ...many);
      await log.record(streams.activity(bad), { type: 'TokenRead', data: { entityId: 'x' } });
      await projectAll(set, log, first);
      expect(await countOf(bad)).toBe(1);
      const { to, marks } = await set.control();
      expect(marks).toBe(2);
      await retryAll(set, log, second);
      expect((await set.control()).to).toEqual(to);
      await expectClean();
    },
  );

  it('stays parked when the retry fails, and names the program that retried', async () => {
    const { log, set, bad } = await prepared();
    await log.record(streams.tenant(bad), created(), updated('strange'), updated('a'));
    await projectAll(set, log, first);
    const [parked] = await parkedIn(set);
    const documents = await documentsOf(set, lineCollections);
    const again: string[] = [];
    const retrying = programOf(linesWithoutStrange, '2', '2026-02-02T00:00:00.000Z');
    const onParked = ({ event_id }: ParkedTenant): void => void again.push(event_id);
    await retryDue(projectionOf(set, log, retrying, onParked));
    expect(await parkedIn(set)).toEqual([{ ...parked, program: '2' }]);
    expect(again).toEqual([parked?.event_id]);
    expect(await documentsOf(set, lineCollections)).toEqual(documents);
    expect((await set.control()).marks).toBe(1);
  });

  it('is parked again at a later event that cannot be read either', async () => {
    const { log, set, bad, countOf } = await prepared();
    await log.record(streams.tenant(bad), created(), updated('strange'), updated('a'));
    const later = log.plant(streams.tenant(bad), { type: 'TenantPainted', data: '{}' });
    await log.record(streams.tenant(bad), updated('b'));
    await projectAll(set, log, first);
    await retryAll(set, log, second);
    expect(await parkedIn(set)).toMatchObject([{ event_id: later, program: '2' }]);
    expect(await countOf(bad)).toBe(3);
    expect((await set.control()).marks).toBe(1);
  });

  it('holds up no other tenant while it is freed', async () => {
    const { log, set, bad, good, expectClean, countOf } = await prepared();
    const many = Array.from({ length: 1_300 }, (_, i) => updated(`${i}`));
    await log.record(streams.tenant(bad), created(), updated('strange'), ...many);
    await log.record(streams.tenant(good), created());
    await projectAll(set, log, first);
    const counts: unknown[] = [];
    const observed: ReadModelSet = {
      ...set,
      advance: async (...asked) => {
        const outcome = await set.advance(...asked);
        if ((await parkedIn(set)).length === 0) return outcome;
        await log.record(streams.tenant(good), updated('in between'));
        await projectAll(set, log, second);
        counts.push(await countOf(good));
        return outcome;
      },
    };
    await retryAll(observed, log, second);
    expect(counts).toEqual([2, 3]);
    await expectClean();
  });

  it('that was freed halfway continues from there', async () => {
    const { log, set, bad, expectClean, countOf } = await prepared();
    const many = Array.from({ length: 1_300 }, (_, i) => updated(`${i}`));
    await log.record(streams.tenant(bad), created(), updated('strange'), ...many);
    await projectAll(set, log, first);
    let commits = 0;
    const dying: ReadModelSet = {
      ...set,
      advance: async (...asked) => {
        if (++commits === 2) throw new Error('killed');
        return set.advance(...asked);
      },
    };
    await expect(retryAll(dying, log, second)).rejects.toThrow('killed');
    expect(await parkedIn(set)).toMatchObject([{ tenant_id: bad, program: '1' }]);
    expect(await countOf(bad)).toBe(513);
    await log.record(streams.tenant(bad), updated('later'));
    await projectAll(set, log, second);
    expect(await countOf(bad)).toBe(513);
    await retryAll(set, log, second);
    await expectClean();
  });

  it('is not freed if the set passes another event of it meanwhile', async () => {
    const { log, set, bad, expectClean } = await prepared();
    await log.record(streams.tenant(bad), created(), updated('strange'));
    await projectAll(set, log, first);
    let reads = 0;
    const passing = {
      ...log,
      readTenant: async function* (...from: Parameters<typeof log.readTenant>) {
        yield* log.readTenant(...from);
        if (++reads > 1) return;
        await log.record(streams.tenant(bad), updated('passed'));
        await projectAll(set, log, second);
      },
    };
    await retryAll(set, passing, second);
    expect(reads).toBe(2);
    await expectClean();
  });

  it('is found among more than a page of parked tenants, and retried alone on request', async () => {
    const { log, set, expectClean } = await prepared();
    const many = Array.from({ length: 501 }, () => randomUUID());
    for (const tenantId of many) await log.record(streams.tenant(tenantId), updated('strange'));
    await projectAll(set, log, first);
    expect((await parkedIn(set)).map(({ tenant_id }) => tenant_id)).toEqual(many.toSorted());
    const [one = ''] = many;
    await retryAll(set, log, programOf(lines, '1'), (tenantId) => tenantId === one);
    expect((await parkedIn(set)).map(({ tenant_id }) => tenant_id)).toEqual(many.slice(1).toSorted());
    expect((await set.control()).marks).toBe(500);
    await retryAll(set, log, second);
    await expectClean();
  });
});
