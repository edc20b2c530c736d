import { closeAfterwards } from '../support/closing';
import { isClustered } from '../support/profile';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { projections } from '../../projections/projections';
import { change, type Change, type Document, type Projector } from '../../projections/projector';
import type { Recorded } from '../../src/domain/events';
import { findTenant } from '../../projections/tenants';
import type { EventLog, Position } from '../../src/event-log/event-log';
import { cachedFolds } from '../../src/ledger/folds';
import { ledger } from '../../src/ledger/ledger';
import { sqliteSnapshots } from '../../src/ledger/sqlite-snapshots';
import { batchOf } from '../../src/projecting/batch';
import { retryDue } from '../../src/projecting/retry-parked';
import { project } from '../../src/projecting/projection-run';
import { PARKED, STREAMS, type Target } from '../../src/read-models/read-models';
import { ledgerStatus } from '../../src/app/status';
import { eventsOf } from '../support/events';
import { withoutReadModels } from '../support/ledgers';
import { until } from '../support/waiting';
import { lineCollections, linesProjector } from './lines';
import {
  allOf,
  created,
  documentsOf,
  openLog,
  openProcess,
  openReadModels,
  parkedIn,
  runOf,
  settings,
  streams,
  updated,
} from './harness';
import { createAndOpen } from '../support/generations';

const names = (): { bad: string; good: string } => ({ bad: randomUUID(), good: randomUUID() });

const json = JSON.stringify;

/** Bad events, as rows of the log, and the reason reported for each. `codec.test` has every reason to find one bad. */
const badEvents: readonly [string, { type: string; data: string; metadata?: string }, RegExp][] = [
  ['data that is not JSON', { type: 'TenantUpdated', data: '{"name":' }, /data is not JSON/],
  [
    'metadata that is not JSON',
    { type: 'TenantUpdated', data: json({ name: 'Fine', settings }), metadata: '{' },
    /metadata.*not JSON/,
  ],
  ['an unknown type', { type: 'TenantPainted', data: '{}' }, /TenantPainted is unknown/],
  [
    'an event whose document is missing',
    { type: 'ApplicationRenamed', data: json({ applicationId: randomUUID(), name: 'x' }) },
    /applications\/.* is missing/,
  ],
];

describe('a bad event', () => {
  it.each(badEvents)('parks its tenant and no other: %s', async (_, row, reason) => {
    const log = await openLog();
    const { bad, good } = names();
    const { position: after } = await log.record(streams.tenant(bad), created('Bad'));
    await log.record(streams.tenant(good), created('Good'));
    const eventId = log.plant(streams.tenant(bad), row);
    const { position } = (await log.head())!;
    await log.record(streams.tenant(bad), updated('waits'));
    const { position: last } = await log.record(streams.tenant(good), updated('goes on'));

    const process = await openProcess(
      log,
      await openReadModels(join(log.folder, 'read-models')),
      projections,
    );
    await process.start();
    expect(await process.reached(last, 10_000)).toBe(true);
    expect(process.warnings).toEqual([]);

    const parked = (await Promise.all(process.live.map(({ generation }) => parkedIn(generation)))).flat();
    expect(parked.length).toBeGreaterThan(0);
    for (const tenant of parked)
      expect(tenant).toEqual({
        tenant_id: bad,
        event_id: eventId,
        event_type: row.type,
        cause: 'bad_event',
        position,
        recorded_at: expect.stringMatching(/Z$/),
        after: expect.any(String),
        reason: expect.stringMatching(reason),
        since: expect.stringMatching(/^\d{4}-.*Z$/),
        program: '1',
      });
    const from = parked[0]?.after ?? '';
    expect(from >= after && from < position).toBe(true);
    for (const reached of [undefined, last]) {
      expect(await process.isParked(bad, reached)).toBe(true);
      expect(await process.isParked(good, reached)).toBe(false);
    }
    expect((await findTenant(process.reader('tenants'), good))?.name).toBe('goes on');
    const kept = (await findTenant(process.reader('tenants'), bad))?.name;
    expect(kept).toBe(row.type === 'ApplicationRenamed' ? 'waits' : 'Bad');
  });

  it('is known to a process that starts later', async () => {
    const log = await openLog();
    const { bad, good } = names();
    await log.record(streams.tenant(bad), created());
    log.plant(streams.tenant(bad), { type: 'TenantUpdated', data: 'no json' });
    const { position: first } = await log.record(streams.tenant(good), created());
    const folder = join(log.folder, 'read-models');
    const before = await openProcess(log, await openReadModels(folder), projections);
    expect(await before.catchUp(first, 10_000)).toBe(true);

    const process = await openProcess(log, await openReadModels(folder), projections);
    await process.start();
    const { position } = await log.record(streams.tenant(good), updated('goes on'));
    expect(await process.reached(position, 10_000)).toBe(true);
    expect(await process.isParked(bad, position)).toBe(true);
    expect(await process.isParked(good, position)).toBe(false);
  });

  it('in the activity stream does not affect tenants and applications', async () => {
    const log = await openLog();
    const { bad } = names();
    await log.record(streams.tenant(bad), created());
    log.plant(streams.activity(bad), { type: 'TokenPainted', data: 'no json' });
    const { position } = await log.record(streams.tenant(bad), updated('after'));
    const process = await openProcess(log, await openReadModels(log.folder), projections);
    await process.catchUp(position, 10_000);
    for (const name of ['tenants', 'applications']) expect(await parkedIn(process.reader(name))).toEqual([]);
    for (const name of ['logs', 'usage']) expect(await parkedIn(process.reader(name))).toHaveLength(1);
    expect((await findTenant(process.reader('tenants'), bad))?.name).toBe('after');
  });

  it('is shown in the status', async () => {
    const log = await openLog();
    const { bad } = names();
    await log.record(streams.tenant(bad), created());
    const eventId = log.plant(streams.tenant(bad), { type: 'TenantPainted', data: '{}' });
    const { position } = (await log.head())!;
    const readModels = await openReadModels(log.folder);
    const process = await openProcess(log, readModels, projections);
    await process.catchUp(position, 10_000);
    const snapshots = sqliteSnapshots(log.folder, await log.identity(), () => undefined);
    closeAfterwards(() => snapshots.close());
    const folds = cachedFolds(log, snapshots, streams);
    const asked = ledger({ log, folds, streams, keys: withoutReadModels });
    const watch = { missing: () => undefined, setBack: () => undefined };
    const here = { log, ledger: asked, projecting: process, store: 'here', replay: { readModels }, watch };
    const status = await ledgerStatus(here, { readsParked: true });
    expect(status.projections).toHaveLength(projections.length);
    for (const projection of status.projections) {
      expect(projection).toMatchObject({ position, lag_events: 0, lag_seconds: 0 });
      expect(projection.parked).toMatchObject([
        { tenant_id: bad, event_id: eventId, position, program: '1' },
      ]);
    }
    expect(status.decisions.parked).toMatchObject([{ tenant_id: bad, event_id: eventId, position }]);
    await log.record(streams.tenant(randomUUID()), created());
    const later = await ledgerStatus(here);
    expect(later.projections.map((projection) => projection.lag_events)).toEqual(projections.map(() => 1));
  });
});

describe('a parked tenant', () => {
  /** The old program cannot read the name `strange`, the new one can. */
  const old = linesProjector((event) => event.type === 'TenantUpdated' && event.data.name === 'strange');
  const fixed = linesProjector();
  const ID = { projection: 'lines', version: 1, generation: 'one' };

  const prepared = async (hooks: { onWrite?: () => void; maxCommitBytes?: number } = {}) => {
    const log = await openLog();
    const readModels = await openReadModels(join(log.folder, 'read-models'), hooks);
    const generation = await createAndOpen(readModels, ID, old.collections, 'log');
    /** The documents of a clean fold by a program that can read everything. */
    const clean = async (): Promise<Record<string, Document>> => {
      const other = await createAndOpen(readModels, { ...ID, generation: 'other' }, old.collections, 'log');
      await project(runOf(fixed, other, log), allOf(log));
      return documentsOf(other, lineCollections);
    };
    const by = (projector: Projector, program: string, now?: string) =>
      runOf(projector, generation, log, program, now);
    return { log, readModels, generation, clean, by };
  };

  it('is parked in the same commit as the rest of its batch', async () => {
    let left = Number.POSITIVE_INFINITY;
    const { log, generation, by } = await prepared({
      onWrite: () => {
        if (--left === 0) throw new Error('injected');
      },
    });
    const { bad, good } = names();
    await log.record(streams.tenant(bad), created(), updated('strange'), updated('waits'));
    await log.record(streams.tenant(good), created());
    let points = 0;
    for (left = 1; ; left = ++points + 1) {
      const outcome = await project(by(old, '1'), allOf(log)).catch(() => 'failed');
      if (outcome !== 'failed') break;
      const { n } = await generation.control();
      const documents = await documentsOf(generation, [...lineCollections, PARKED, STREAMS]);
      expect(Object.keys(documents)).toHaveLength(n === 0 ? 0 : 7);
    }
    // Two heads, two rows, two streams, one parked tenant, the control state and the end.
    if (!isClustered) expect(points).toBe(9);
    expect((await generation.control()).n).toBe(1);
    expect(await parkedIn(generation)).toMatchObject([{ tenant_id: bad, reason: 'I cannot read this.' }]);
    const heads = await documentsOf(generation, ['heads']);
    expect(heads[`${bad} heads all`]).toMatchObject({ count: 1 });
    expect(heads[`${good} heads all`]).toMatchObject({ count: 1 });
  });

  it('has none of the changes of the event that parked it, including those made before the failure', async () => {
    const { log, generation, by } = await prepared();
    const { bad } = names();
    const changes = (event: Recorded): readonly Change[] => [
      change('heads', 'all', () => ({ at: event.position })),
      change('rows', 'new', () => ({ at: event.position })),
      change('heads', 'all', (head: Document | undefined) => {
        if (event.type === 'TenantUpdated') throw new Error(`Not on top of ${JSON.stringify(head)}.`);
        return head;
      }),
    ];
    const failing = { ...old, on: { TenantCreated: changes, TenantUpdated: changes } };
    const { position } = await log.record(streams.tenant(bad), created());
    const next = await log.record(streams.tenant(bad), updated('strange'));
    await project(by(failing, '1'), allOf(log));
    expect(await parkedIn(generation)).toMatchObject([
      { position: next.position, reason: `Not on top of {"at":"${next.position}"}.` },
    ]);
    expect(await documentsOf(generation, lineCollections)).toEqual({
      [`${bad} heads all`]: { at: position },
      [`${bad} rows new`]: { at: position },
    });
  });

  it('is parked by an event whose documents exceed one commit, and retried in parts', async () => {
    const { log, generation, by } = await prepared({ maxCommitBytes: 2_500 });
    const { bad, good } = names();
    const named: Projector = {
      ...old,
      on: {
        TenantCreated: (event) => [change('rows', event.id, () => ({ name: event.data.name }))],
        TenantUpdated: (event) => [change('rows', event.id, () => ({ name: event.data.name.repeat(20) }))],
      },
    };
    const short: Projector = {
      ...named,
      on: { ...named.on, TenantUpdated: named.on.TenantCreated as never },
    };
    await log.record(streams.tenant(bad), created(), updated('x'.repeat(180)));
    await log.record(streams.tenant(bad), ...Array.from({ length: 40 }, () => updated('y'.repeat(100))));
    await log.record(streams.tenant(good), created());
    await project(by(named, '1'), allOf(log));
    const [parked, ...others] = await parkedIn(generation);
    expect(others).toEqual([]);
    expect(parked).toMatchObject({
      tenant_id: bad,
      cause: 'bad_event',
      reason: expect.stringMatching(/bytes exceeds the maximum of 2500/),
    });
    expect(Object.keys(await documentsOf(generation, ['rows']))).toHaveLength(2);
    await retryDue(by(named, '2'));
    expect(await parkedIn(generation)).toHaveLength(1);
    await retryDue(by(short, '3'));
    expect(await parkedIn(generation)).toEqual([]);
    expect(Object.keys(await documentsOf(generation, ['rows']))).toHaveLength(43);
  });

  it('stays parked when the same program restarts', async () => {
    const { log, generation, by } = await prepared();
    const { bad } = names();
    await log.record(streams.tenant(bad), created(), updated('strange'));
    await project(by(old, '1'), allOf(log));
    const parked = await parkedIn(generation);
    await log.record(streams.tenant(bad), updated('waits'));
    const again = await (await openReadModels(join(log.folder, 'read-models'), {})).open(ID, old.collections);
    const run = { ...by(fixed, '1'), generation: again };
    await retryDue(run);
    await project(run, allOf(log));
    expect(await parkedIn(again)).toEqual(parked);
    expect(parked).toHaveLength(1);
  });

  it('is unparked by a newer program, and then equals a clean fold', async () => {
    const log = await openLog();
    const { bad, good } = names();
    const folder = join(log.folder, 'read-models');
    await log.record(streams.tenant(bad), created(), updated('a'), updated('strange'), updated('b'));
    const { position } = await log.record(streams.tenant(good), created(), updated('strange'));
    const before = await openProcess(log, await openReadModels(folder), [old], '1');
    await before.start();
    await before.reached(position, 10_000);
    expect(await parkedIn(before.reader('lines'))).toHaveLength(2);
    await before.stop();

    const { position: last } = await log.record(streams.tenant(bad), updated('c'));
    const readModels = await openReadModels(folder);
    const after = await openProcess(log, readModels, [fixed], '2');
    await after.start();
    expect(await after.reached(last, 10_000)).toBe(true);
    await until(async () => (await parkedIn(after.reader('lines'))).length === 0);
    const other = await createAndOpen(readModels, { ...ID, generation: 'other' }, fixed.collections, 'log');
    await project(runOf(fixed, other, log), allOf(log));
    expect(await documentsOf(after.reader('lines'), lineCollections)).toEqual(
      await documentsOf(other, lineCollections),
    );
    expect(after.warnings).toEqual([]);
  });

  it.each([512, 513])(
    'resumes right after its last applied event, although %i events of its batch came before',
    async (applied) => {
      const { log, generation, by } = await prepared();
      const { bad } = names();
      const before = Array.from({ length: applied - 1 }, (_, i) => updated(`${i}`));
      await log.record(streams.tenant(bad), created(), ...before, updated('strange'), updated('a'));
      const inOneBatch = async function* (after: Position | undefined) {
        yield batchOf(await eventsOf(log.readAll({ after })), streams);
      };
      await project(by(old, '1'), inOneBatch);
      expect(await parkedIn(generation)).toHaveLength(1);
      await retryDue(by(fixed, '2'));
      expect(await parkedIn(generation)).toEqual([]);
      const other = await openReadModels();
      const clean = await createAndOpen(other, ID, fixed.collections, 'log');
      await project(runOf(fixed, clean, log), allOf(log));
      expect(await documentsOf(generation, lineCollections)).toEqual(
        await documentsOf(clean, lineCollections),
      );
    },
  );

  it('stays parked when the retry fails, and names the program that retried', async () => {
    const { log, generation, by } = await prepared();
    const { bad } = names();
    await log.record(streams.tenant(bad), created(), updated('strange'), updated('a'));
    await project(by(old, '1', '2026-01-01T00:00:00.000Z'), allOf(log));
    const [first] = await parkedIn(generation);
    const documents = await documentsOf(generation, lineCollections);
    await retryDue(by(old, '2', '2026-02-02T00:00:00.000Z'));
    expect(await parkedIn(generation)).toEqual([{ ...first, program: '2' }]);
    expect(first?.since).toBe('2026-01-01T00:00:00.000Z');
    expect(await documentsOf(generation, lineCollections)).toEqual(documents);
  });

  it('is parked again at a later event that cannot be read either', async () => {
    const { log, generation, by } = await prepared();
    const { bad } = names();
    await log.record(streams.tenant(bad), created(), updated('strange'), updated('a'));
    const later = log.plant(streams.tenant(bad), { type: 'TenantPainted', data: '{}' });
    await log.record(streams.tenant(bad), updated('b'));
    await project(by(old, '1'), allOf(log));
    await retryDue(by(fixed, '2'));
    expect(await parkedIn(generation)).toMatchObject([{ event_id: later, program: '2' }]);
    expect((await documentsOf(generation, ['heads']))[`${bad} heads all`]).toMatchObject({ count: 3 });
  });

  it.each([512, 1_300])('with %i events waiting is unparked page by page', async (waiting) => {
    const { log, generation, clean, by } = await prepared();
    const { bad, good } = names();
    await log.record(streams.tenant(bad), created());
    await log.record(streams.tenant(good), created());
    const many = Array.from({ length: waiting - 1 }, (_, i) => updated(`${i}`));
    await log.record(streams.tenant(bad), updated('strange'), ...many);
    await log.record(streams.activity(bad), { type: 'TokenRead' });
    await project(by(old, '1'), allOf(log));
    expect((await documentsOf(generation, ['heads']))[`${bad} heads all`]).toMatchObject({ count: 1 });
    const to = (await generation.control()).to;
    await retryDue(by(fixed, '2'));
    expect(await parkedIn(generation)).toEqual([]);
    expect((await generation.control()).to).toEqual(to);
    expect(await documentsOf(generation, lineCollections)).toEqual(await clean());
  });

  it('holds up no other tenant while it is unparked', async () => {
    const log = await openLog();
    const { bad, good } = names();
    const folder = join(log.folder, 'read-models');
    await log.record(streams.tenant(good), created());
    await log.record(streams.tenant(bad), created(), updated('strange'));
    const many = Array.from({ length: 1_300 }, (_, i) => updated(`${i}`));
    const { position } = await log.record(streams.tenant(bad), ...many);
    const before = await openProcess(log, await openReadModels(folder), [old], '1');
    await before.catchUp(position, 10_000);
    expect(await parkedIn(before.reader('lines'))).toHaveLength(1);
    await before.stop();

    const readModels = await openReadModels(folder);
    const reader = await readModels.open(before.live[0]!.generation.id, fixed.collections);
    let recorded = '';
    const reached: boolean[] = [];
    const writing: EventLog = {
      ...log,
      readTenant: async function* (...from) {
        reached.push(((await reader.control()).to?.position ?? '') >= recorded);
        ({ position: recorded } = await log.record(streams.tenant(good), updated('in between')));
        yield* log.readTenant(...from);
      },
    };
    const after = await openProcess(writing, readModels, [fixed], '2');
    await after.start();
    await until(async () => (await parkedIn(reader)).length === 0);
    expect(reached.length).toBeGreaterThanOrEqual(3);
    expect(reached).not.toContain(false);
    expect(after.warnings).toEqual([]);
  });

  it('that was unparked halfway continues from there', async () => {
    const { log, generation, clean, by } = await prepared();
    const { bad } = names();
    const many = Array.from({ length: 1_300 }, (_, i) => updated(`${i}`));
    await log.record(streams.tenant(bad), created(), updated('strange'), ...many);
    await project(by(old, '1'), allOf(log));
    let commits = 0;
    const dying: Target = {
      ...generation,
      commit: async (n, to, writes) => {
        if (++commits === 2) throw new Error('killed');
        return generation.commit(n, to, writes);
      },
    };
    await expect(retryDue({ ...by(fixed, '2'), generation: dying })).rejects.toThrow('killed');
    const [halfway] = await parkedIn(generation);
    expect(halfway).toMatchObject({ tenant_id: bad, program: '1' });
    expect((await documentsOf(generation, ['heads']))[`${bad} heads all`]).toMatchObject({ count: 513 });
    await log.record(streams.tenant(bad), updated('later'));
    await project(by(fixed, '2'), allOf(log));
    expect((await documentsOf(generation, ['heads']))[`${bad} heads all`]).toMatchObject({ count: 513 });
    await retryDue(by(fixed, '2'));
    expect(await documentsOf(generation, lineCollections)).toEqual(await clean());
  });

  it('is not retried beyond what the generation has projected', async () => {
    const { log, generation, clean, by } = await prepared();
    const { bad } = names();
    await log.record(streams.tenant(bad), created(), updated('strange'), updated('a'));
    await project(by(old, '1'), allOf(log));
    await log.record(streams.tenant(bad), updated('not yet projected'));
    await retryDue(by(fixed, '2'));
    expect((await documentsOf(generation, ['heads']))[`${bad} heads all`]).toMatchObject({ count: 3 });
    await project(by(fixed, '2'), allOf(log));
    expect(await documentsOf(generation, lineCollections)).toEqual(await clean());
  });

  it('is found among more than a page of parked tenants', async () => {
    const { log, generation, clean, by } = await prepared();
    const many = Array.from({ length: 501 }, () => randomUUID());
    for (const tenantId of many) await log.record(streams.tenant(tenantId), updated('strange'));
    await project(by(old, '1'), allOf(log));
    expect((await parkedIn(generation)).map((tenant) => tenant.tenant_id)).toEqual(many.toSorted());
    await retryDue(by(fixed, '2'));
    expect(await parkedIn(generation)).toEqual([]);
    expect(await documentsOf(generation, lineCollections)).toEqual(await clean());
  });
});
