import * as fc from 'fast-check';
import { RateLimiterRes } from 'rate-limiter-flexible';
import { boundedCounters, type Counters } from '../../src/limits/counters';
import { MemoryLimiter } from '../../src/limits/memory-limiter';
import { readPolicies, specifiedPolicies, type Policy } from '../../src/limits/policies';
import { rateLimits, type Counted, type RateLimitsDependencies } from '../../src/limits/rate-limits';
import { seed, seeded } from '../support/property';

const A = '192.0.2.1';
const B = '192.0.2.2';

/** Limits on a clock that the test moves. */
const limits = (
  policies: readonly Policy[] = specifiedPolicies,
  dependencies: Partial<RateLimitsDependencies> = {},
) => {
  const clock = { now: 1_000.25 };
  const memory = boundedCounters(1_000, () => clock.now);
  const warnings: string[] = [];
  const now = () => clock.now;
  const made = rateLimits(policies, { memory, now, report: (what) => warnings.push(what), ...dependencies });
  const many = async (count: number, method = 'GET', path = '/x', address = A): Promise<Counted> => {
    let last: Counted | undefined;
    for (let i = 0; i < count; i += 1) last = await made.count(method, path, address);
    return last!;
  };
  return { clock, memory, warnings, many, ...made };
};

const passed = ({ refused }: Counted): boolean => refused === undefined;

const rows: readonly [string, string, string, number][] = [
  ['global', 'GET', '/tenants/self', 1_000],
  ['portal', 'GET', '/portal/x', 600],
  ['tokens-search', 'POST', '/tokens/search', 50],
  ['tokens-read', 'GET', '/tokens', 100],
  ['tokens-create', 'POST', '/tokens', 200],
  ['tokens-create', 'POST', '/tokenize', 200],
];

describe.each(rows)('the limit %s at %s %s', (name, method, path, limit) => {
  it('is exceeded by one request more, and then blocks for exactly 10 s', async () => {
    const { clock, many, count } = limits();
    expect(passed(await many(limit, method, path))).toBe(true);
    clock.now += 9_999;
    const first = await count(method, path, A);
    expect(first.refused).toEqual({
      policy: expect.objectContaining({ name }),
      retryAfter: 10,
      blockStarted: true,
    });
    const endsAt = clock.now + 10_000;
    for (const after of [0.5, 600, 3_400, 5_999, 0.499]) {
      clock.now += after;
      const { refused } = await many(10, method, path);
      expect([refused?.policy.name, refused?.blockStarted]).toEqual([name, false]);
      // Never too early, and less than a second too late.
      const left = (endsAt - clock.now) / 1_000;
      expect(refused?.retryAfter).toBe(Math.max(1, Math.ceil(left)));
    }
    clock.now += 0.001;
    expect(passed(await count(method, path, A))).toBe(true);
    expect(passed(await many(limit - 1, method, path))).toBe(true);
    expect(passed(await count(method, path, A))).toBe(false);
  });

  it('applies to one address', async () => {
    const { many, count } = limits();
    expect(passed(await many(limit + 1, method, path, A))).toBe(false);
    expect(passed(await count(method, path, B))).toBe(true);
  });

  it('starts again 10 s after the first request', async () => {
    const { clock, many, count } = limits();
    await many(limit, method, path);
    clock.now += 10_000;
    expect(passed(await many(limit, method, path))).toBe(true);
    expect(passed(await count(method, path, A))).toBe(false);
  });
});

describe('rate limits', () => {
  it('of a path count beside the global one; the block of a path applies to that path', async () => {
    const { many, count } = limits();
    await many(51, 'POST', '/tokens/search');
    expect((await count('POST', '/tokens/search', A)).refused?.policy.name).toBe('tokens-search');
    for (const [method, path] of [
      ['POST', '/tokens'],
      ['GET', '/tokens'],
      ['GET', '/tokens/search'],
      ['GET', '/x'],
    ] as const)
      expect(passed(await count(method, path, A))).toBe(true);
    expect((await count('GET', '/x', A)).stateField).toBe('"global";r=943;t=10');
  });

  it('share a counter if one limit has two paths', async () => {
    const { many, count } = limits();
    await many(100, 'POST', '/tokens');
    await many(100, 'POST', '/tokenize');
    expect((await count('POST', '/tokens', A)).refused?.policy.name).toBe('tokens-create');
    expect((await count('POST', '/tokenize', A)).refused?.policy.name).toBe('tokens-create');
  });

  it('block everything with the global one, and count nothing on paths meanwhile', async () => {
    const { clock, many, count } = limits();
    await many(1_001);
    for (const [method, path] of [
      ['POST', '/tokens/search'],
      ['GET', '/tokens'],
    ] as const)
      expect((await many(700, method, path)).refused?.policy.name).toBe('global');
    clock.now += 10_000;
    expect((await count('POST', '/tokens/search', A)).stateField).toBe(
      '"global";r=999;t=10, "tokens-search";r=49;t=10',
    );
  });

  it('report what is left and for how long', async () => {
    const { clock, count, many } = limits();
    expect(await count('GET', '/x', A)).toEqual({
      policyField: '"global";q=1000;w=10',
      stateField: '"global";r=999;t=10',
    });
    clock.now += 7_500;
    expect((await count('POST', '/tokens/search', A)).stateField).toBe(
      '"global";r=998;t=3, "tokens-search";r=49;t=10',
    );
    const refused = await many(50, 'POST', '/tokens/search');
    expect(refused).toEqual({
      policyField: '"global";q=1000;w=10, "tokens-search";q=50;w=10',
      stateField: '"global";r=948;t=3, "tokens-search";r=0;t=10',
      refused: { policy: specifiedPolicies[2], retryAfter: 10, blockStarted: true },
    });
    clock.now += 9_999.999;
    const last = await count('POST', '/tokens/search', A);
    expect(last.refused?.retryAfter).toBe(1);
    expect(last.stateField).toMatch(/"tokens-search";r=0;t=1$/);
  });

  it('that are turned off count nothing', async () => {
    const off = limits(readPolicies('off'));
    expect(await off.many(2_000)).toEqual({});
    expect(off.status().counters_kept).toBe(0);
    const { many } = limits(readPolicies('global=off'));
    expect(await many(2_000)).toEqual({});
    expect((await many(51, 'POST', '/tokens/search')).stateField).toBe('"tokens-search";r=0;t=10');
  });

  it('count blocks, counters and evictions', async () => {
    const { many, status } = limits(readPolicies('global=5'));
    await many(9);
    await many(9, 'GET', '/x', B);
    for (let i = 0; i < 1_500; i += 1) await many(1, 'GET', '/x', `198.51.100.${i}`);
    expect(status()).toEqual({
      shared: false,
      counters_kept: 1_000,
      counters_dropped: 502,
      blocks_started: 2,
      counted_alone: 0,
      uncounted: 0,
    });
    expect(passed(await many(1))).toBe(false);
  });

  it('apply to concurrent requests', async () => {
    const { count, status } = limits();
    const all = await Promise.all(Array.from({ length: 1_500 }, async () => count('GET', '/x', A)));
    expect(all.filter(passed)).toHaveLength(1_000);
    expect(all.filter(({ refused }) => refused?.blockStarted === true)).toHaveLength(1);
    expect(status().blocks_started).toBe(1);
  });

  it(seeded('agree with a naive count of every request'), async () => {
    const [GLOBAL, PATH] = [4, 2];
    const step = fc.record({
      wait: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 4_000 })),
      address: fc.constantFrom(A, B),
      path: fc.constantFrom('/x', '/tokens/search'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { clock, count } = limits(readPolicies(`global=${GLOBAL}/3/5,tokens-search=${PATH}/2/4`));
        const windows = new Map<string, { since: number; seen: number; until: number }>();
        const allows = (name: string, limit: number, window: number, block: number): boolean => {
          const entry = windows.get(name) ?? { since: -Infinity, seen: 0, until: -Infinity };
          windows.set(name, entry);
          if (clock.now < entry.until) return false;
          if (clock.now >= entry.since + window || entry.until > entry.since)
            Object.assign(entry, { since: clock.now, seen: 0 });
          entry.seen += 1;
          if (entry.seen <= limit) return true;
          entry.until = clock.now + block;
          return false;
        };
        for (const { wait, address, path } of steps) {
          clock.now += wait;
          const expected =
            allows(`g ${address}`, GLOBAL, 3_000, 5_000) &&
            (path === '/x' || allows(`p ${address}`, PATH, 2_000, 4_000));
          expect(passed(await count('POST', path, address))).toBe(expected);
        }
      }),
      { seed, numRuns: 300 },
    );
  });
});

describe('failing counters', () => {
  it('let requests pass uncounted, and report it', async () => {
    const fail = (): never => {
      throw new Error('No memory.');
    };
    const memory: Counters = { ...boundedCounters(10), add: fail };
    const { many, status, warnings } = limits(readPolicies('global=5'), { memory });
    expect(await many(20)).toEqual({ policyField: '"global";q=5;w=10', stateField: undefined });
    expect(status()).toMatchObject({ uncounted: 20, blocks_started: 0 });
    expect(new Set(warnings)).toEqual(new Set(['Requests are not counted: every rate counter fails.']));
  });
});

describe('shared counters', () => {
  /** A store shared by two instances that can be made to fail or to hang. */
  const sharedStore = () => {
    const clock = { now: 0 };
    const state: { mood: 'well' | 'failing' | 'silent' } = { mood: 'well' };
    const counters = boundedCounters(1_000, () => clock.now);
    let asked = 0;
    const failing: Counters = {
      ...counters,
      add: (...counted) => {
        asked += 1;
        if (state.mood === 'failing') throw new Error('The store is away.');
        return counters.add(...counted);
      },
    };
    const shared = (policy: Policy) => {
      const limiter = new MemoryLimiter(policy, failing);
      const { _upsert: upsert } = limiter;
      limiter._upsert = (...counted) =>
        state.mood === 'silent' ? new Promise(() => undefined) : upsert.apply(limiter, counted);
      return limiter;
    };
    return { clock, state, shared, asked: () => asked };
  };
  const five = readPolicies('global=5')!;

  it('count the requests of all instances together', async () => {
    const { clock, shared } = sharedStore();
    const [first, second] = [limits(five, { shared }), limits(five, { shared })];
    await first.many(3);
    expect((await second.many(2)).stateField).toBe('"global";r=0;t=10');
    expect((await second.many(1)).refused).toMatchObject({ blockStarted: true, retryAfter: 10 });
    expect((await first.many(1)).refused).toMatchObject({ blockStarted: false });
    expect([first.status(), second.status()]).toMatchObject([
      { blocks_started: 0, counters_kept: 0, counted_alone: 0 },
      { blocks_started: 1, counters_kept: 0, counted_alone: 0 },
    ]);
    clock.now += 10_000;
    expect(passed(await first.many(5))).toBe(true);
    expect([...first.warnings, ...second.warnings]).toEqual([]);
  });

  it('never lead to a Retry-After of zero, whatever they return', async () => {
    const shared = (policy: Policy) => {
      const limiter = new MemoryLimiter(policy, boundedCounters(10));
      limiter._getRateLimiterRes = () => new RateLimiterRes(0, 0, 9);
      return limiter;
    };
    expect((await limits(five, { shared }).many(1)).refused?.retryAfter).toBe(1);
  });

  const ALONE = 'The shared rate counters are unavailable: this instance counts requests on its own.';
  const TOGETHER = 'The shared rate counters are available again: instances count requests together.';

  it('that fail are backed by memory: each instance counts on its own, and reports it once', async () => {
    const { state, shared } = sharedStore();
    const [first, second] = [limits(five, { shared }), limits(five, { shared })];
    await first.many(5);
    state.mood = 'failing';
    for (const instance of [first, second]) {
      expect((await instance.many(5)).stateField).toBe('"global";r=0;t=10');
      instance.clock.now += 5_000;
      expect((await instance.many(1)).refused).toMatchObject({ blockStarted: true, retryAfter: 10 });
      instance.clock.now += 9_999;
      expect(passed(await instance.many(1))).toBe(false);
      instance.clock.now += 1;
      expect(passed(await instance.many(1))).toBe(true);
      expect(instance.status()).toMatchObject({
        shared: true,
        trouble: ALONE,
        blocks_started: 1,
        counted_alone: 8,
        uncounted: 0,
      });
      expect(instance.warnings).toEqual([ALONE]);
    }
  });

  it('that fail are not used for 5 s, then tried by one request; once they respond, instances count together', async () => {
    const { state, shared, asked } = sharedStore();
    const { clock, many, count, status, warnings } = limits(readPolicies('global=50'), { shared });
    await many(3);
    state.mood = 'failing';
    await many(1);
    expect(asked()).toBe(4);
    clock.now += 4_999;
    await many(10);
    expect(asked()).toBe(4);
    clock.now += 1;
    await Promise.all(Array.from({ length: 10 }, async () => count('GET', '/x', A)));
    expect(asked()).toBe(5);
    state.mood = 'well';
    await many(1);
    expect([asked(), warnings]).toEqual([5, [ALONE]]);
    clock.now += 5_000;
    expect((await many(1)).stateField).toBe('"global";r=46;t=10');
    expect((await many(1)).stateField).toBe('"global";r=45;t=10');
    expect(warnings).toEqual([ALONE, TOGETHER]);
    expect(status()).toMatchObject({ shared: true, counted_alone: 22 });
    expect(status()).not.toHaveProperty('trouble');
  });

  it('are not considered recovered by a response from before they failed', async () => {
    const answers: ((result: RateLimiterRes) => void)[] = [];
    const shared = (policy: Policy) => {
      const limiter = new MemoryLimiter(policy, boundedCounters(10));
      let calls = 0;
      limiter.consume = () => {
        calls += 1;
        if (calls > 1) return Promise.reject(new Error('The store is away.'));
        return new Promise((resolve) => answers.push(resolve));
      };
      return limiter;
    };
    const { count, status } = limits(five, { shared });
    const early = count('GET', '/x', A);
    await count('GET', '/x', A);
    answers[0]!(new RateLimiterRes(3, 1_000, 2));
    expect((await early).stateField).toBe('"global";r=3;t=1');
    expect(status()).toMatchObject({ trouble: ALONE });
  });

  it('that do not respond are also backed by memory, soon', async () => {
    const { state, shared } = sharedStore();
    state.mood = 'silent';
    const { clock, many, count, status } = limits(five, { shared });
    const startedAt = performance.now();
    const all = await Promise.all(Array.from({ length: 6 }, async () => count('GET', '/x', A)));
    expect(performance.now() - startedAt).toBeLessThan(1_500);
    expect(all.filter(passed)).toHaveLength(5);
    state.mood = 'well';
    clock.now += 5_000;
    expect(passed(await many(5))).toBe(true);
    expect(status()).toMatchObject({ counted_alone: 6, uncounted: 0 });
  });

  it('let requests pass uncounted if memory fails as well, and warn once', async () => {
    const { state, shared } = sharedStore();
    state.mood = 'failing';
    const memory: Counters = {
      ...boundedCounters(10),
      add: () => {
        throw new Error('No memory.');
      },
    };
    const { many, status, warnings } = limits(five, { shared, memory });
    expect(await many(20)).toEqual({ policyField: '"global";q=5;w=10', stateField: undefined });
    expect(status()).toMatchObject({ uncounted: 20, blocks_started: 0 });
    expect(new Set(warnings)).toEqual(
      new Set([
        'The shared rate counters are unavailable: this instance counts requests on its own.',
        'Requests are not counted: every rate counter fails.',
      ]),
    );
  });
});
