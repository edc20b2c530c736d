import * as fc from 'fast-check';
import { readPolicies, specifiedPolicies, type Policy } from '../../src/limits/policies';
import type { RateLimits, SharedLimiter } from '../../src/limits/rate-limits';
import { seed, seeded } from '../support/property';

// What is loaded from here on has this clock.
jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
const { RateLimiterMemory, RateLimiterRes } =
  require('rate-limiter-flexible') as typeof import('rate-limiter-flexible');
const { rateLimits } =
  require('../../src/limits/rate-limits') as typeof import('../../src/limits/rate-limits');

type Counted = Awaited<ReturnType<RateLimits['count']>>;

const A = '192.0.2.1';
const B = '192.0.2.2';

const limits = (policies: readonly Policy[] = specifiedPolicies, shared?: SharedLimiter) => {
  const reports: string[] = [];
  const report = (what: string): void => void reports.push(what);
  const made = rateLimits(policies, { shared, sharedWithinMs: 200, shownAloneMs: 10_000, report });
  const many = async (count: number, method = 'GET', path = '/x', address = A): Promise<Counted> => {
    let last: Counted | undefined;
    for (let i = 0; i < count; i += 1) last = await made.count(method, path, address);
    return last!;
  };
  return { reports, many, ...made };
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
    const { many, count } = limits();
    expect(passed(await many(limit, method, path))).toBe(true);
    jest.advanceTimersByTime(9_999);
    const first = await count(method, path, A);
    expect(first.refused).toEqual({
      policy: expect.objectContaining({ name }),
      retryAfter: 10,
      blockStarted: true,
    });
    const endsAt = jest.now() + 10_000;
    for (const after of [1, 600, 3_400, 5_998]) {
      jest.advanceTimersByTime(after);
      const { refused } = await many(10, method, path);
      expect([refused?.policy.name, refused?.blockStarted]).toEqual([name, false]);
      // Never too early, and less than a second too late.
      const left = (endsAt - jest.now()) / 1_000;
      expect(refused?.retryAfter).toBe(Math.max(1, Math.ceil(left)));
    }
    jest.advanceTimersByTime(1);
    expect(passed(await count(method, path, A))).toBe(true);
    expect(passed(await many(limit - 1, method, path))).toBe(true);
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
    expect((await count('GET', '/x', A)).fields?.RateLimit).toBe('"global";r=943;t=10');
  });

  it('share a counter if one limit has two paths', async () => {
    const { many, count } = limits();
    await many(100, 'POST', '/tokens');
    await many(100, 'POST', '/tokenize');
    expect((await count('POST', '/tokens', A)).refused?.policy.name).toBe('tokens-create');
    expect((await count('POST', '/tokenize', A)).refused?.policy.name).toBe('tokens-create');
  });

  it('block everything with the global one, and count nothing on paths meanwhile', async () => {
    const { many, count } = limits();
    await many(1_001);
    for (const [method, path] of [
      ['POST', '/tokens/search'],
      ['GET', '/tokens'],
    ] as const)
      expect((await many(700, method, path)).refused?.policy.name).toBe('global');
    jest.advanceTimersByTime(10_000);
    expect((await count('POST', '/tokens/search', A)).fields?.RateLimit).toBe(
      '"global";r=999;t=10, "tokens-search";r=49;t=10',
    );
  });

  it('report what is left and for how long', async () => {
    const { count, many } = limits();
    expect(await count('GET', '/x', A)).toEqual({
      fields: { 'RateLimit-Policy': '"global";q=1000;w=10', RateLimit: '"global";r=999;t=10' },
    });
    jest.advanceTimersByTime(7_500);
    expect((await count('POST', '/tokens/search', A)).fields?.RateLimit).toBe(
      '"global";r=998;t=3, "tokens-search";r=49;t=10',
    );
    const refused = await many(50, 'POST', '/tokens/search');
    expect(refused).toEqual({
      fields: {
        'RateLimit-Policy': '"global";q=1000;w=10, "tokens-search";q=50;w=10',
        RateLimit: '"global";r=948;t=3, "tokens-search";r=0;t=10',
      },
      refused: { policy: specifiedPolicies[2], retryAfter: 10, blockStarted: true },
    });
    jest.advanceTimersByTime(9_999);
    const last = await count('POST', '/tokens/search', A);
    expect(last.refused?.retryAfter).toBe(1);
    expect(last.fields?.RateLimit).toMatch(/"tokens-search";r=0;t=1$/);
  });

  it('that are turned off count nothing', async () => {
    expect(await limits(readPolicies('off')).many(2_000)).toEqual({});
    const { many } = limits(readPolicies('global=off'));
    expect(await many(2_000)).toEqual({});
    expect((await many(51, 'POST', '/tokens/search')).fields?.RateLimit).toBe('"tokens-search";r=0;t=10');
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
        const { count } = limits(readPolicies(`global=${GLOBAL}/3/5,tokens-search=${PATH}/2/4`));
        const windows = new Map<string, { since: number; seen: number; until: number }>();
        const allows = (name: string, limit: number, window: number, block: number): boolean => {
          const entry = windows.get(name) ?? { since: -Infinity, seen: 0, until: -Infinity };
          windows.set(name, entry);
          if (jest.now() < entry.until) return false;
          if (jest.now() >= entry.since + window || entry.until > entry.since)
            Object.assign(entry, { since: jest.now(), seen: 0 });
          entry.seen += 1;
          if (entry.seen <= limit) return true;
          entry.until = jest.now() + block;
          return false;
        };
        for (const { wait, address, path } of steps) {
          jest.advanceTimersByTime(wait);
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

describe('shared counters', () => {
  /** Counters shared by two instances, which can be made to fail or to hang. */
  const sharedCounters = () => {
    const state: { mood: 'well' | 'failing' | 'silent' } = { mood: 'well' };
    const made = new Map<string, InstanceType<typeof RateLimiterMemory>>();
    const shared: SharedLimiter = ({ name, limit, windowSeconds, blockSeconds }) => {
      const options = { points: limit, duration: windowSeconds, blockDuration: blockSeconds };
      const store = made.get(name) ?? new RateLimiterMemory(options);
      made.set(name, store);
      const limiter = new RateLimiterMemory(options);
      limiter.consume = async (key) => {
        if (state.mood === 'failing') throw new Error('The store is away.');
        return state.mood === 'silent' ? new Promise(() => undefined) : store.consume(key);
      };
      return limiter;
    };
    return { state, shared };
  };
  const five = readPolicies('global=5')!;
  const ALONE = 'The shared rate counters do not respond: this instance counts requests on its own.';

  it('never lead to a Retry-After of zero, whatever they return', async () => {
    const shared: SharedLimiter = () => {
      const limiter = new RateLimiterMemory({ points: 5, duration: 10 });
      limiter.consume = async () => {
        // oxlint-disable-next-line only-throw-error -- as the library does
        throw new RateLimiterRes(0, 0, 9);
      };
      return limiter;
    };
    expect((await limits(five, shared).many(1)).refused?.retryAfter).toBe(1);
  });

  it('that fail are backed by memory: each instance counts and blocks on its own, and says so', async () => {
    const { state, shared } = sharedCounters();
    const instance = limits(five, shared);
    await instance.many(5);
    state.mood = 'failing';
    expect((await instance.many(5)).fields?.RateLimit).toBe('"global";r=0;t=10');
    jest.advanceTimersByTime(5_000);
    expect((await instance.many(1)).refused).toMatchObject({ blockStarted: true, retryAfter: 10 });
    jest.advanceTimersByTime(9_999);
    expect(passed(await instance.many(1))).toBe(false);
    jest.advanceTimersByTime(1);
    expect(passed(await instance.many(1))).toBe(true);
    expect(instance.status()).toEqual({ shared: false, blocks_started: 1, counted_alone: 8 });
    expect(new Set(instance.reports)).toEqual(new Set([ALONE]));
    state.mood = 'well';
    jest.advanceTimersByTime(10_001);
    expect((await instance.many(1)).fields?.RateLimit).toBe('"global";r=4;t=10');
    expect(instance.status()).toMatchObject({ shared: true, counted_alone: 8 });
  });

  it('that do not respond are backed by memory after 200 ms, and counted once', async () => {
    const { state, shared } = sharedCounters();
    state.mood = 'silent';
    const { count, status } = limits(five, shared);
    const all = Promise.all(Array.from({ length: 6 }, async () => count('GET', '/x', A)));
    await jest.advanceTimersByTimeAsync(200);
    expect((await all).filter(passed)).toHaveLength(5);
    expect(status()).toMatchObject({ shared: false, counted_alone: 6, blocks_started: 1 });
  });
});
