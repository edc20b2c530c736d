import { randomUUID } from 'node:crypto';
import { pause } from '../../src/async/clock';
import type { EventLog } from '../../src/event-log/event-log';
import { tailOf } from '../../src/event-log/tail';
import { startFollowing, type LeasedFollowing } from '../../src/projecting/follow-leased';
import { buildFirst } from '../../src/projecting/rebuild';
import { liveProjection } from '../../src/projecting/show-tenants';
import type { Lease, ReadModels } from '../../src/read-models/read-models';
import { TIMES } from '../../src/times';
import { closeAfterwards } from '../support/closing';
import { until } from '../support/waiting';
import {
  documentsOf,
  linesWithoutStrange,
  parkedIn,
  programOf,
  projectAll,
  replayHarness,
  someTenants,
  streams,
  updated,
  type ReplayHarness,
} from './harness';
import { lineCollections, plainLines } from './lines';

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
  { lease = leases().lease('one'), ...more }: Partial<LeasedFollowing> = {},
) => {
  const errors: unknown[] = [];
  const parked: string[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const dependencies = { ...harness, buildFirst: async () => undefined, ...more };
  const tail = tailOf(dependencies, { onError });
  closeAfterwards(tail.close);
  const stop = startFollowing({
    ...dependencies,
    lease,
    tail,
    isWaitedFor: () => false,
    live: liveProjection(dependencies, { onParked: ({ tenant_id }) => void parked.push(tenant_id) }),
    onError,
  });
  closeAfterwards(stop);
  return { stop, errors, parked };
};

const positionOf = async ({ set }: ReplayHarness) => (await set.control()).to?.position;

const isAtHead = async ({ log, readModels }: ReplayHarness): Promise<boolean> =>
  (await readModels.live())?.control.to?.position === (await log.head())?.position;

const expectPlain = async (harness: ReplayHarness): Promise<void> => {
  await until(() => isAtHead(harness));
  const { set } = (await harness.readModels.live())!;
  expect(await documentsOf(set, lineCollections)).toEqual(plainLines(harness.history));
};

afterEach(() => jest.restoreAllMocks());

describe('whoever follows the log with a lease', () => {
  it('projects what is there and what is appended', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    const { errors } = started(harness);
    await expectPlain(harness);
    await harness.record(tenantId, updated('c'));
    await expectPlain(harness);
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
    const { stop } = started(harness, { lease: lease('one') });
    await pause(2 * TIMES.retryMs);
    expect(await positionOf(harness)).toBeUndefined();
    const other = started(harness, { lease: lease('other') });
    await expectPlain(harness);
    await other.stop();
    await until(() => holder() === 'one');
    await harness.record(tenantId, updated('c'));
    await expectPlain(harness);
    take('other');
    await pause(1.5 * TIMES.renewMs);
    const before = await positionOf(harness);
    await harness.record(tenantId, updated('d'));
    await pause(2 * TIMES.restMs);
    expect(await positionOf(harness)).toBe(before);
    await stop();
    expect(holder()).toBe('other');
  }, 15_000);

  it('retries parked tenants of another program when it starts, and reports those that it parks', async () => {
    const harness = await replayHarness();
    const [tenantId = '', other = ''] = await someTenants(harness);
    await harness.record(tenantId, updated('strange'), updated('waits'));
    await projectAll(harness.set, harness.log, programOf(linesWithoutStrange, '0'));
    const { parked, errors } = started(harness);
    await until(async () => (await harness.set.control()).marks === 0);
    await expectPlain(harness);
    harness.log.plant(streams.tenant(other), { type: 'TenantPainted', data: '{}' });
    await harness.record(tenantId, updated('wakes the follower'));
    await until(() => parked.length > 0);
    expect(parked).toEqual([other]);
    await until(async () => (await parkedIn(harness.set)).length > 0);
    expect(await parkedIn(harness.set)).toMatchObject([{ tenant_id: other }]);
    expect(errors).toEqual([]);
  });

  it('leaves a tenant alone whose event is young, since somebody is probably just projecting it', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    const { errors } = started(harness);
    await expectPlain(harness);
    jest.replaceProperty(TIMES, 'restMs', 60_000);
    const before = await positionOf(harness);
    await harness.record(tenantId, updated('c'));
    await pause(2 * TIMES.retryMs);
    expect(await positionOf(harness)).toBe(before);
    expect(errors).toEqual([]);
  });

  it('makes the first set if there is none', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    await harness.readModels.abandon(harness.readModels.version);
    const { errors } = started(harness, { buildFirst: () => buildFirst(harness) });
    await until(() => isAtHead(harness));
    await expectPlain(harness);
    expect(errors).toEqual([]);
  });

  it('projects nothing from a log that does not hold what was projected', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    const to = { position: '0000000000000001', eventId: randomUUID() };
    await harness.set.advance(new Map(), async () => [], to);
    jest.replaceProperty(TIMES, 'logDoubtMs', 0);
    const replaced: EventLog = { ...harness.log, continuity: async () => 'replaced' };
    const { errors } = started(harness, { log: replaced });
    await until(() => errors.length > 0);
    expect(errors[0]).toMatchObject({ code: 'log_set_back' });
    expect((await harness.set.control()).to).toEqual(to);
  });
});
