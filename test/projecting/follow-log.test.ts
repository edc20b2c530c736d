import { randomUUID } from 'node:crypto';
import { compose } from '../../projections/projector';
import type { EventLog } from '../../src/event-log/event-log';
import { startFollowing, type FollowingDependencies } from '../../src/projecting/follow-log';
import type { Lease, ReadModels } from '../../src/read-models/read-models';
import { closeAfterwards } from '../support/closing';
import { until } from '../support/waiting';
import {
  documentsOf,
  foldingOf,
  parkedIn,
  projectAll,
  replayHarness,
  someTenants,
  streams,
  updated,
  type ReplayHarness,
} from './harness';
import { lineCollections, linesProjector, plainLines } from './lines';

/** A lease that any number of processes may want. */
const leases = () => {
  let holder: string | undefined;
  const lease = (name: string): Lease => ({
    hold: async () => {
      holder ??= name;
      return holder === name;
    },
    release: async () => {
      if (holder === name) holder = undefined;
    },
    holder: async () => holder,
  });
  return { lease, take: (name: string) => (holder = name), holder: () => holder };
};

const started = (
  harness: ReplayHarness,
  { lease = leases().lease('one'), ...more }: Partial<FollowingDependencies> = {},
) => {
  const errors: unknown[] = [];
  const positions: string[] = [];
  const parked: string[] = [];
  const stop = startFollowing({
    ...harness,
    lease,
    sliceMs: () => undefined,
    onStep: (step) => {
      if (step.shown !== undefined) positions.push(step.shown.position);
      parked.push(...step.parked.map(({ tenant_id }) => tenant_id));
    },
    buildFirst: async () => undefined,
    onError: (error) => void errors.push(error),
    ...more,
  });
  closeAfterwards(stop);
  return { stop, errors, positions, parked };
};

const isAtHead = async ({ log, readModels }: ReplayHarness): Promise<boolean> =>
  (await readModels.live())?.control.to?.position === (await log.head())?.position;

const expectPlain = async (harness: ReplayHarness): Promise<void> => {
  await until(() => isAtHead(harness));
  const { set } = (await harness.readModels.live())!;
  expect(await documentsOf(set, lineCollections)).toEqual(plainLines(harness.history));
};

describe('a projector', () => {
  it('projects what is there and what is appended, and says how far it is', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    const { positions, errors } = started(harness);
    await expectPlain(harness);
    const last = await harness.record(tenantId, updated('c'));
    await expectPlain(harness);
    await until(() => positions.at(-1) === last);
    harness.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
    expect(errors).toEqual([]);
  });

  it('goes on after errors, which it reports', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    let failures = 2;
    const failing: ReadModels = {
      ...harness.readModels,
      live: async () => {
        if (failures-- > 0) throw new Error('away');
        return harness.readModels.live();
      },
    };
    const { errors } = started(harness, { readModels: failing });
    await expectPlain(harness);
    expect(errors).toHaveLength(2);
  });

  it('waits for the lease, and stops projecting when another process has it', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    const { lease, take, holder } = leases();
    take('other');
    const { positions, stop } = started(harness, { lease: lease('one') });
    const other = started(harness, { lease: lease('other') });
    await expectPlain(harness);
    expect(positions).toEqual([]);
    await other.stop();
    await until(() => holder() === 'one');
    await harness.record(tenantId, updated('c'));
    await until(() => positions.length > 0);
    take('other');
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const before = positions.length;
    await harness.record(tenantId, updated('d'));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(positions).toHaveLength(before);
    await stop();
    expect(holder()).toBe('other');
  }, 15_000);

  it('retries parked tenants of another program when it starts, and reports those that it parks', async () => {
    const harness = await replayHarness();
    const [tenantId = '', other = ''] = await someTenants(harness);
    await harness.record(tenantId, updated('strange'), updated('waits'));
    const old = compose([
      linesProjector((event) => event.type === 'TenantUpdated' && event.data.name === 'strange'),
    ]);
    await projectAll(harness.set, harness.log, foldingOf(old, '0'));
    const { parked, errors } = started(harness);
    await until(async () => (await harness.set.control()).parked === 0);
    await expectPlain(harness);
    harness.log.plant(streams.tenant(other), { type: 'TenantPainted', data: '{}' });
    await harness.record(tenantId, updated('wakes the follower'));
    await until(() => parked.length > 0);
    expect(parked).toEqual([other]);
    expect(await parkedIn(harness.set)).toMatchObject([{ tenant_id: other }]);
    expect(errors).toEqual([]);
  });

  it('projects nothing from a log that does not hold what was projected', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    const to = { position: '0000000000000001', eventId: randomUUID() };
    await harness.set.advance(async () => ({ to, writes: [], parked: 0 }));
    const replaced: EventLog = { ...harness.log, continuity: async () => 'replaced' };
    const { errors } = started(harness, { log: replaced });
    await until(() => errors.length > 0);
    expect(errors[0]).toMatchObject({ code: 'log_set_back' });
    expect((await harness.set.control()).to).toEqual(to);
  });
});
