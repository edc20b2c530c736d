import { randomUUID } from 'node:crypto';
import { pause } from '../../src/async/clock';
import { appendToEnd } from '../../src/event-log/event-log';
import { fault } from '../../src/fault';
import { MAX_GROUP_EVENTS } from '../../src/projecting/project-tenants';
import { rebuild } from '../../src/projecting/rebuild';
import { liveProjection, showing, type Show } from '../../src/projecting/show-tenants';
import type { Advanced, ParkedTenant, ReadModels, ReadModelSet } from '../../src/read-models/read-models';
import { TIMES } from '../../src/times';
import { deferred } from '../support/waiting';
import {
  created,
  documentsOf,
  headOf,
  projectionOf,
  projectTenant,
  replayHarness,
  streams,
  turn,
  updated,
  type ReplayHarness,
} from './harness';
import { lineCollections, plainLines } from './lines';

const LONG = 20_000;

afterEach(() => jest.restoreAllMocks());

type Asked = Parameters<ReadModelSet['advance']>;

/** How one process shows tenants. `around` interferes with its commits. */
const showingIn = (
  harness: ReplayHarness,
  around: (set: ReadModelSet, ...asked: Asked) => Promise<Advanced> = (set, ...asked) =>
    set.advance(...asked),
  isAtEase?: boolean,
) => {
  const groups: (readonly string[])[] = [];
  const errors: unknown[] = [];
  const parked: string[] = [];
  const own = harness.place.open();
  const readModels: ReadModels = {
    ...own,
    live: async () => {
      const live = await own.live();
      const advance = (...asked: Asked): Promise<Advanced> => {
        groups.push([...asked[0].keys()]);
        return around(live!.set, ...asked);
      };
      return live && { ...live, set: { ...live.set, advance } };
    },
  };
  const onParked = ({ tenant_id }: ParkedTenant): void => void parked.push(tenant_id);
  const show = showing(liveProjection({ ...harness, readModels }, { onParked }), {
    onError: (error) => void errors.push(error),
    ...(isAtEase === undefined ? {} : { isAtEase }),
  });
  return { show, groups, errors, parked };
};

/** New tenants, and up to where each is wanted. */
const newTenants = async ({ record }: ReplayHarness, count: number) => {
  const tenants: (readonly [string, string])[] = [];
  while (tenants.length < count) {
    const tenantId = randomUUID();
    tenants.push([tenantId, await record(tenantId, created(), updated('a'))]);
  }
  return tenants;
};

const showAll = (show: Show, tenants: readonly (readonly [string, string])[]) =>
  Promise.all(tenants.map(([tenantId, position]) => show(tenantId, position, LONG)));

const expectPlain = async ({ readModels, history }: ReplayHarness): Promise<void> => {
  const { set } = (await readModels.live())!;
  expect(await documentsOf(set, lineCollections)).toEqual(plainLines(history));
};

describe('showing tenants', () => {
  it('commits those that are asked for together, or wait for another commit, as one group', async () => {
    const harness = await replayHarness();
    const [begun, go] = [deferred(), deferred()];
    const { show, groups } = showingIn(harness, async (set, ...asked) => {
      begun.resolve();
      await go.promise;
      return set.advance(...asked);
    });
    const tenants = await newTenants(harness, 2 + 64 + 3);
    const first = showAll(show, tenants.slice(0, 2));
    await begun.promise;
    const rest = showAll(show, tenants.slice(2));
    go.resolve();
    const shown = [...(await first), ...(await rest)];
    expect(new Set(shown)).toEqual(new Set([true]));
    expect(groups.map(({ length }) => length)).toEqual([2, 64, 3]);
    expect((await harness.set.control()).to).toBeUndefined();
    await expectPlain(harness);
    expect(await showAll(show, tenants)).toEqual(shown);
    expect(groups).toHaveLength(3);
  });

  it('commits a tenant alone that another process commits, too, so that it delays no other', async () => {
    const harness = await replayHarness();
    const [[contested, second] = ['', ''], ...others] = await newTenants(harness, 3);
    const positions = [harness.history[0]?.position ?? '', second];
    const position = await harness.record(contested, updated('b'));
    const [held, go] = [deferred(), deferred()];
    const { show, groups } = showingIn(harness, async (set, ...asked) => {
      // Another process is first two times.
      const next = asked[0].has(contested) ? positions.shift() : undefined;
      if (next !== undefined) await projectTenant(projectionOf(set, harness.log), contested, next);
      else if (asked[0].has(contested)) {
        held.resolve();
        await go.promise;
      }
      return set.advance(...asked);
    });
    const contending = show(contested, position, LONG);
    expect(await showAll(show, others)).toEqual([true, true]);
    await held.promise;
    const more = await newTenants(harness, 2);
    expect(await showAll(show, more)).toEqual([true, true]);
    go.resolve();
    expect(await contending).toBe(true);
    expect(groups.map(({ length }) => length)).toEqual([3, 1, 1, 2]);
    await expectPlain(harness);
  });

  it('leaves a tenant to the follower that needs more than four commits, unless it may take its time', async () => {
    const harness = await replayHarness();
    const tenantId = randomUUID();
    await harness.record(tenantId, created());
    const many = Array.from({ length: 4 * MAX_GROUP_EVENTS }, () => updated('a'));
    const last = await harness.record(tenantId, ...many);
    const { show, groups } = showingIn(harness);
    const [[other, position] = ['', '']] = await newTenants(harness, 1);
    const together = [show(tenantId, last, LONG), show(other, position, LONG)];
    expect(await Promise.all(together)).toEqual([false, true]);
    expect(groups).toHaveLength(4);
    expect(await harness.set.get(tenantId, 'heads', headOf(tenantId).key)).toMatchObject({
      count: 3.5 * MAX_GROUP_EVENTS,
    });
    const more = await harness.record(tenantId, ...many);
    const paced = showingIn(harness, undefined, true);
    expect(await paced.show(tenantId, more, LONG)).toBe(true);
    expect(paced.groups.length).toBeGreaterThan(4);
    await expectPlain(harness);
  });

  it('says at once that nothing is shown if the store failed a moment ago', async () => {
    jest.replaceProperty(TIMES, 'noAnswerMs', 100);
    const harness = await replayHarness();
    const [[tenantId, position] = ['', '']] = await newTenants(harness, 1);
    let isAway = true;
    const away = fault('read_models_unavailable', 'They are away.');
    const { show, groups, errors } = showingIn(harness, (set, ...asked) =>
      isAway ? Promise.reject(away) : set.advance(...asked),
    );
    expect(await show(tenantId, position, LONG)).toBe(false);
    isAway = false;
    expect(await show(tenantId, position, LONG)).toBe(false);
    expect([groups.length, errors]).toEqual([1, [away]]);
    await pause(110);
    expect(await show(tenantId, position, LONG)).toBe(true);
  });

  it('tries again while another process has the lock, until the time is up', async () => {
    const harness = await replayHarness();
    const [[tenantId, position] = ['', '']] = await newTenants(harness, 1);
    let left = 3;
    const busy = () => Promise.reject(fault('read_models_busy', 'It is locked.'));
    const { show, groups, errors } = showingIn(harness, (set, ...asked) =>
      left-- > 0 ? busy() : set.advance(...asked),
    );
    expect(await show(tenantId, position, LONG)).toBe(true);
    expect([groups.length, errors]).toEqual([4, []]);
    const locked = showingIn(harness, busy);
    expect(await locked.show(tenantId, await harness.record(tenantId, updated('b')), 300)).toBe(false);
    expect(locked.groups.length).toBeGreaterThan(1);
  });

  it('parks a tenant, and says at once that it is not shown', async () => {
    const harness = await replayHarness();
    const [[tenantId, before] = ['', ''], [other, position] = ['', '']] = await newTenants(harness, 2);
    const { show, groups, parked } = showingIn(harness);
    harness.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
    const { position: bad } = (await harness.log.head())!;
    const together = [show(tenantId, bad, LONG), show(other, position, LONG)];
    expect(await Promise.all(together)).toEqual([false, true]);
    // Once more, after looking at what is set aside.
    expect([groups.length, parked]).toEqual([2, [tenantId]]);
    expect([await show(tenantId, bad, LONG), await show(tenantId, before, LONG)]).toEqual([false, true]);
    expect(groups).toHaveLength(2);
  });

  it('goes on in the set that has taken the place of its own', async () => {
    const harness = await replayHarness();
    const [[tenantId, position] = ['', '']] = await newTenants(harness, 1);
    const { show } = showingIn(harness);
    expect(await show(tenantId, position, LONG)).toBe(true);
    const next = { acceptDifferences: false, onStep: () => undefined, onDifference: () => undefined };
    const { set } = await rebuild(harness, next);
    const last = await harness.record(tenantId, updated('b'));
    expect(await show(tenantId, last, LONG)).toBe(true);
    expect((await set.progress([tenantId]))[0]?.position).toBe(last);
    await expectPlain(harness);
  });

  it('is not there before there is a set', async () => {
    const harness = await replayHarness();
    const [[tenantId, position] = ['', '']] = await newTenants(harness, 1);
    await harness.readModels.abandon(harness.readModels.version);
    expect(await showingIn(harness).show(tenantId, position, LONG)).toBe(false);
  });

  it('of one tenant makes progress in two processes at once', async () => {
    const harness = await replayHarness();
    const { log } = harness;
    const [[tenantId] = ['', '']] = await newTenants(harness, 1);
    const outcomes: string[] = [];
    const client = async ({ show }: { readonly show: Show }): Promise<readonly boolean[]> => {
      const shown: boolean[] = [];
      for (let i = 0; i < 5; i += 1, await turn()) {
        const event = {
          id: randomUUID(),
          type: 'TenantUpdated',
          data: updated('x').data!,
          metadata: { version: 1 },
        };
        const { position } = await appendToEnd(log, streams.tenant(tenantId), [event], LONG);
        shown.push(await show(tenantId, position, LONG));
      }
      return shown;
    };
    const processes = [1, 2].map(() =>
      showingIn(harness, async (set, ...asked) => {
        await turn();
        const outcome = await set.advance(...asked);
        outcomes.push(...(outcome as Map<string, string>).values());
        return outcome;
      }),
    );
    const clients = processes.flatMap((process) => Array.from({ length: 8 }, () => client(process)));
    expect(new Set((await Promise.all(clients)).flat())).toEqual(new Set([true]));
    expect(new Set(outcomes)).toEqual(new Set(['done', 'overtaken']));
    for (const { groups } of processes) expect(groups.length).toBeGreaterThan(1);
    expect(await harness.set.get(tenantId, 'heads', 'all')).toMatchObject({ count: 2 + 80 });
  });
});
