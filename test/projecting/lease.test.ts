import { keptLeases } from '../../src/projecting/lease';
import type { Leases } from '../../src/read-models/read-models';
import { passTime } from '../support/pass-time';

/** Leases of a store that may be away, and that others may hold. */
const fakeStore = (leaseMs: number) => {
  const store = { isAway: false, others: new Set<string>(), requests: 0 };
  const leases: Leases = {
    leaseMs,
    lease: async (whats) => {
      store.requests += 1;
      if (store.isAway) throw new Error('The store is away.');
      return new Set(whats.filter((what) => !store.others.has(what)));
    },
    release: async () => undefined,
  };
  return { store, leases };
};

describe('leases that a process keeps', () => {
  it('are renewed after half of their time, all together', async () => {
    const { store, leases } = fakeStore(1_000);
    const kept = keptLeases(leases, ['a', 'b'], () => undefined);
    for (let i = 0; i < 5; i += 1) expect(await kept.hold()).toEqual(new Set(['a', 'b']));
    expect(store.requests).toBe(1);
    passTime(520);
    await kept.hold();
    expect(store.requests).toBe(2);
  });

  it('are given up by their holder once it could not renew them in time', async () => {
    const { store, leases } = fakeStore(1_000);
    const warnings: string[] = [];
    const kept = keptLeases(leases, ['a', 'b'], (what) => void warnings.push(what));
    await kept.hold();
    store.isAway = true;
    passTime(520);
    expect(await kept.hold()).toEqual(new Set(['a', 'b']));
    expect(warnings).toEqual(['The leases a, b cannot be renewed.']);
    passTime(520);
    expect(await kept.hold()).toEqual(new Set());
    store.isAway = false;
    passTime(1_000);
    expect((await kept.hold()).size).toBe(2);
  });

  it('that others hold are tried once in a while', async () => {
    const { store, leases } = fakeStore(10_000);
    store.others.add('b');
    const kept = keptLeases(leases, ['a', 'b'], () => undefined);
    expect(await kept.hold()).toEqual(new Set(['a']));
    await kept.hold();
    expect(store.requests).toBe(1);
    store.others.clear();
    passTime(1_000);
    expect((await kept.hold()).has('b')).toBe(true);
    expect(store.requests).toBe(2);
  });

  it('are asked for at once after a release, and with another note', async () => {
    const { store, leases } = fakeStore(10_000);
    const kept = keptLeases(leases, ['a'], () => undefined);
    await kept.hold('begun');
    await kept.hold('half done');
    expect(store.requests).toBe(2);
    await kept.release();
    await kept.hold('half done');
    expect(store.requests).toBe(3);
  });
});
