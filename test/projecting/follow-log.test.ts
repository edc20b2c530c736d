import { randomUUID } from 'node:crypto';
import type { ReadModelSet } from '../../src/read-models/read-models';
import { eventsOf } from '../support/events';
import {
  created,
  documentsOf,
  followerOf,
  parkedIn,
  programOf,
  projectionOf,
  projectTenant,
  replayHarness,
  someTenants,
  streams,
  updated,
} from './harness';
import { lineCollections, plainLines } from './lines';

describe('following the log', () => {
  it.each([['good'], ['bad']])(
    'does not move past a tenant that another process has overtaken and whose rest is %s, and goes on with it',
    async (rest) => {
      const harness = await replayHarness();
      const { log, set, history } = harness;
      const [tenantId, other] = [randomUUID(), randomUUID()];
      const first = await harness.record(tenantId, created());
      await harness.record(other, created(), updated('other'));
      if (rest === 'good') await harness.record(tenantId, updated('rest'));
      else log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
      let isOvertaken = false;
      const slow: ReadModelSet = {
        ...set,
        advance: async (...asked) => {
          if (!isOvertaken) await projectTenant(projectionOf(set, log), tenantId, first);
          isOvertaken = true;
          return set.advance(...asked);
        },
      };
      const follower = followerOf(slow, log);
      expect(await follower.step()).toMatchObject({ outcome: 'overtaken', isEnd: false });
      expect((await set.control()).to).toBeUndefined();
      const shown = history.filter(({ tenantId: id, position }) => id === other || position === first);
      expect(await documentsOf(set, lineCollections)).toEqual(plainLines(shown));
      expect((await follower.step()).outcome).toBe('done');
      expect((await set.control()).to).toEqual(await log.head());
      expect(await documentsOf(set, lineCollections)).toEqual(plainLines(history));
      expect(await parkedIn(set)).toHaveLength(rest === 'good' ? 0 : 1);
    },
  );

  it('moves up to the first event of a tenant that rests, and applies what comes after it', async () => {
    const harness = await replayHarness();
    const { log, set, history } = harness;
    const [before = ''] = await someTenants(harness, 1);
    const end = (await log.head())!;
    const [resting, after] = await someTenants(harness, 2);
    const rested = new Set([resting]);
    const rests = (tenantId: string): boolean => rested.has(tenantId);
    const follower = followerOf(set, log, programOf(), { rests });
    expect(await follower.step()).toMatchObject({ outcome: 'done', to: end.position, isEnd: false });
    expect((await set.control()).to).toEqual(end);
    const shown = history.filter(({ tenantId }) => tenantId === before || tenantId === after);
    expect(await documentsOf(set, lineCollections)).toEqual(plainLines(shown));
    expect(await follower.step()).toMatchObject({ outcome: 'resting', events: 0 });
    rested.clear();
    expect(await follower.step()).toMatchObject({ outcome: 'done', isEnd: true });
    expect((await set.control()).to).toEqual(await log.head());
    expect(await documentsOf(set, lineCollections)).toEqual(plainLines(history));
  });

  it('skips what was projected already, and stops at a position', async () => {
    const harness = await replayHarness();
    const { log, set, history } = harness;
    const [tenantId = ''] = await someTenants(harness, 1);
    const shown = history.at(-1)?.position ?? '';
    await projectTenant(projectionOf(set, log), tenantId, shown);
    const last = await harness.record(tenantId, updated('c'));
    const follower = followerOf(set, log);
    const [first] = history;
    expect(await follower.step(first?.position)).toMatchObject({ to: first?.position, events: 1 });
    expect((await set.furthest())?.position).toBe(shown);
    expect(await follower.step(last)).toMatchObject({ outcome: 'done', to: last, events: 3 });
    expect(await documentsOf(set, lineCollections)).toEqual(plainLines(history));
  });

  it('reads the stream of a tenant before it calls events missing that it was not given', async () => {
    const harness = await replayHarness();
    const { log, set, history } = harness;
    const [tenantId = ''] = await someTenants(harness, 1);
    const [first, , last] = await eventsOf(log.readTenant(tenantId));
    const given = { tenantId, before: undefined, events: [first!, last!] };
    expect(await projectionOf(set, log).commit([given])).toMatchObject({ overtaken: [] });
    expect(await documentsOf(set, lineCollections)).toEqual(plainLines(history));
  });
});
