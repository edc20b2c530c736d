import { RateLimiterRes, RLWrapperTimeouts, type RateLimiterAbstract } from 'rate-limiter-flexible';
import { boundedCounters, type Counters } from './counters';
import { MemoryLimiter } from './memory-limiter';
import { appliesTo, type Policy } from './policies';

/** The policy that refuses a request, the seconds to wait, and whether the request started the block. */
export interface LimitExceeded {
  readonly policy: Policy;
  readonly retryAfter: number;
  readonly blockStarted: boolean;
}

/** The result of counting a request. */
export interface Counted {
  /** The `RateLimit-Policy` and `RateLimit` fields of the response; undefined: nothing was counted. */
  readonly policyField: string | undefined;
  readonly stateField: string | undefined;
  readonly refused?: LimitExceeded;
}

export interface RateLimits {
  readonly policies: readonly Policy[];
  /** Never fails: a request that cannot be counted is let through. */
  count(method: string, path: string, address: string): Promise<Counted>;
  status(): RateLimitsStatus;
}

/** Since the start of this process. */
export interface RateLimitsStatus {
  /** Whether instances share their counters. */
  readonly shared: boolean;
  /** Why this process currently counts on its own although counters are shared. */
  readonly trouble?: string;
  readonly counters_kept: number;
  readonly counters_dropped: number;
  readonly blocks_started: number;
  /** How often a request was counted in memory because the shared counters did not respond, once per limit. */
  readonly counted_alone: number;
  /** How often a request was not counted because no counter responded, once per limit. */
  readonly uncounted: number;
}

export interface RateLimitsDependencies {
  /** The limiter of a policy with counters that all instances share. Omitted: this process counts on its own. */
  readonly shared?: ((policy: Policy) => RateLimiterAbstract) | undefined;
  readonly memory?: Counters;
  /** Without an error, it reports a recovery. The same failure may be reported with every request. */
  readonly report: (what: string, error?: unknown) => void;
  readonly now?: () => number;
  /** A request waits no longer than this for the shared counters. */
  readonly sharedWithinMs?: number;
}

/** Bounds the memory: an attacker with many addresses must not fill it. */
const MAX_COUNTERS = 200_000;

const SHARED_WITHIN_MS = 200;
/** How long to avoid the shared counters after a failure: requests must not wait for them one after the other. */
const PAUSE_MS = 5_000;

const ALONE = 'The shared rate counters are unavailable: this instance counts requests on its own.';
const TOGETHER = 'The shared rate counters are available again: instances count requests together.';

interface Rule {
  readonly policy: Policy;
  readonly own: RateLimiterAbstract;
  readonly shared: RateLimiterAbstract | undefined;
}

interface Outcome {
  readonly isRefused: boolean;
  readonly result: RateLimiterRes;
}

/** As in draft-ietf-httpapi-ratelimit-headers-10: first quota and window, below what is left and for how long. */
const quotaOf = ({ name, limit, windowSeconds }: Policy): string => `"${name}";q=${limit};w=${windowSeconds}`;

/** Rounded up, so that a client that waits this long is not too early. */
const secondsOf = ({ msBeforeNext }: RateLimiterRes): number => Math.max(1, Math.ceil(msBeforeNext / 1_000));

const stateOf = ({ name }: Policy, { isRefused, result }: Outcome): string =>
  `"${name}";r=${isRefused ? 0 : result.remainingPoints};t=${secondsOf(result)}`;

const joined = (fields: readonly string[]): string | undefined =>
  fields.length === 0 ? undefined : fields.join(', ');

/** A circuit breaker for the shared counters. */
const circuitBreaker = ({ report, now = () => performance.now() }: RateLimitsDependencies) => {
  let retryAt: number | undefined;

  const failed = (error: Error): void => {
    if (retryAt === undefined) report(ALONE, error);
    retryAt = now() + PAUSE_MS;
  };
  const recovered = (): void => {
    if (retryAt !== undefined) report(TOGETHER);
    retryAt = undefined;
  };
  /** While open, lets one request per pause through. */
  const mayTry = (): boolean => {
    if (retryAt === undefined) return true;
    if (now() < retryAt) return false;
    retryAt = now() + PAUSE_MS;
    return true;
  };
  return {
    isOpen: () => retryAt !== undefined,
    /** Undefined: they were not tried, or failed. */
    run: async (attempt: () => Promise<Outcome | Error>): Promise<Outcome | undefined> => {
      // A late response to a request from before the failure must not close it.
      const wasOpen = retryAt !== undefined;
      if (!mayTry()) return undefined;
      const outcome = await attempt();
      if (outcome instanceof Error) failed(outcome);
      else if (wasOpen) recovered();
      return outcome instanceof Error ? undefined : outcome;
    },
  };
};

/** The library rejects with its result when the limit is exceeded, and with anything else when counting failed. */
const consume = async (limiter: RateLimiterAbstract, address: string): Promise<Outcome | Error> => {
  try {
    return { isRefused: false, result: await limiter.consume(address) };
  } catch (thrown) {
    if (thrown instanceof RateLimiterRes) return { isRefused: true, result: thrown };
    return thrown instanceof Error ? thrown : new Error(String(thrown), { cause: thrown });
  }
};

/** Without those that another one replaces. */
const inForce = (rules: readonly Rule[]): readonly Rule[] =>
  rules.filter(({ policy }) => !rules.some((other) => other.policy.replaces === policy.name));

export const rateLimits = (policies: readonly Policy[], dependencies: RateLimitsDependencies): RateLimits => {
  const { shared, memory = boundedCounters(MAX_COUNTERS), sharedWithinMs = SHARED_WITHIN_MS } = dependencies;
  const breaker = circuitBreaker(dependencies);
  const totals = { blocks_started: 0, counted_alone: 0, uncounted: 0 };
  const rules = policies.map((policy): Rule => ({
    policy,
    own: new MemoryLimiter(policy, memory),
    shared: shared && new RLWrapperTimeouts({ limiter: shared(policy), timeoutMs: sharedWithinMs }),
  }));

  const consumeShared = async (
    limiter: RateLimiterAbstract,
    address: string,
  ): Promise<Outcome | undefined> => {
    const outcome = await breaker.run(() => consume(limiter, address));
    if (outcome === undefined) totals.counted_alone += 1;
    return outcome;
  };

  /** Falls back to memory. If that fails too, requests pass: a broken counter must not cause an outage. */
  const countBy = async ({ own, shared: limiter }: Rule, address: string): Promise<Outcome | undefined> => {
    const outcome = (limiter && (await consumeShared(limiter, address))) ?? (await consume(own, address));
    if (!(outcome instanceof Error)) return outcome;
    totals.uncounted += 1;
    dependencies.report('Requests are not counted: every rate counter fails.', outcome);
    return undefined;
  };

  const refusal = (policy: Policy, result: RateLimiterRes): LimitExceeded => {
    const blockStarted = result.consumedPoints === policy.limit + 1;
    if (blockStarted) totals.blocks_started += 1;
    return { policy, retryAfter: secondsOf(result), blockStarted };
  };

  return {
    policies,
    /** A request that one policy refuses is not counted by the next: requests during a block must not start another. */
    count: async (method, path, address) => {
      const applying = inForce(rules.filter(({ policy }) => appliesTo(policy, method, path)));
      const policyField = joined(applying.map(({ policy }) => quotaOf(policy)));
      const states: string[] = [];
      for (const rule of applying) {
        const outcome = await countBy(rule, address);
        if (outcome === undefined) continue;
        states.push(stateOf(rule.policy, outcome));
        if (outcome.isRefused)
          return { policyField, stateField: joined(states), refused: refusal(rule.policy, outcome.result) };
      }
      return { policyField, stateField: joined(states) };
    },
    status: () => ({
      shared: shared !== undefined,
      ...(breaker.isOpen() ? { trouble: ALONE } : {}),
      counters_kept: memory.kept(),
      counters_dropped: memory.dropped(),
      ...totals,
    }),
  };
};
