import { RLWrapperTimeouts, type RateLimiterAbstract, type RateLimiterRes } from 'rate-limiter-flexible';
import { boundedCounters, type Counters } from './counters';
import { MemoryLimiter } from './memory-limiter';
import { appliesTo, type Policy } from './policies';

/** By which policy a request is refused, for how many seconds, and whether the block began with it. */
export interface Refused {
  readonly policy: Policy;
  readonly retryAfter: number;
  readonly blockStarted: boolean;
}

/** What counting a request came to. */
export interface Counted {
  /** The `RateLimit-Policy` and `RateLimit` fields of the answer; undefined when nothing was counted. */
  readonly policyField: string | undefined;
  readonly stateField: string | undefined;
  readonly refused?: Refused;
}

export interface RateLimits {
  readonly policies: readonly Policy[];
  /** It never fails: a request that cannot be counted passes. */
  count(method: string, path: string, address: string): Promise<Counted>;
  status(): RateLimitsStatus;
}

/** Since the start of this process. */
export interface RateLimitsStatus {
  readonly counters_kept: number;
  readonly counters_dropped: number;
  readonly blocks_started: number;
  /** Counted in memory because the shared counters did not answer. */
  readonly counted_alone: number;
  /** Let through uncounted because no counter answered. */
  readonly uncounted: number;
}

export interface RateLimitsParts {
  /** The limiter of a policy whose counters all instances share. Left out: this process counts for itself. */
  readonly shared?: (policy: Policy) => RateLimiterAbstract;
  readonly memory?: Counters;
  /** Counters fail: at most once a minute. */
  readonly warn: (what: string, error?: unknown) => void;
}

/** Memory for a process: an attacker with many addresses must not fill it. */
const MOST_COUNTERS = 200_000;

/** A request waits no longer than this for the shared counters. */
const SHARED_WITHIN_MS = 250;
const WARN_EVERY_MS = 60_000;

interface Rule {
  readonly policy: Policy;
  readonly limiter: RateLimiterAbstract;
}

interface Outcome {
  readonly isRefused: boolean;
  readonly result: RateLimiterRes;
}

/** As in draft-ietf-httpapi-ratelimit-headers-10: quota and window; what is left of it, and for how long. */
const quotaOf = ({ name, limit, windowSeconds }: Policy): string => `"${name}";q=${limit};w=${windowSeconds}`;

/** Whole seconds, rounded up: whoever waits that long is not too early. */
const secondsOf = ({ msBeforeNext }: RateLimiterRes): number => Math.max(1, Math.ceil(msBeforeNext / 1_000));

const stateOf = ({ name }: Policy, { isRefused, result }: Outcome): string =>
  `"${name}";r=${isRefused ? 0 : result.remainingPoints};t=${secondsOf(result)}`;

const listOf = (fields: readonly string[]): string | undefined =>
  fields.length === 0 ? undefined : fields.join(', ');

/** The same warning once in a while, not at every request. */
const seldom = (warn: RateLimitsParts['warn']): RateLimitsParts['warn'] => {
  const last = new Map<string, number>();
  return (what, error) => {
    const at = performance.now();
    if (at - (last.get(what) ?? -Infinity) < WARN_EVERY_MS) return;
    last.set(what, at);
    warn(what, error);
  };
};

/** Shared counters with memory as their insurance: a store that fails or does not answer stops nobody. */
const insured = (shared: RateLimiterAbstract, policy: Policy, memory: Counters): RateLimiterAbstract =>
  new RLWrapperTimeouts({
    limiter: shared,
    timeoutMs: SHARED_WITHIN_MS,
    insuranceLimiter: new MemoryLimiter(policy, memory),
    // The wrapper hands its own on to the insurance.
    blockDuration: policy.blockSeconds,
  });

export const rateLimits = (policies: readonly Policy[], parts: RateLimitsParts): RateLimits => {
  const { shared, memory = boundedCounters(MOST_COUNTERS) } = parts;
  const warn = seldom(parts.warn);
  const totals = { blocks_started: 0, counted_alone: 0, uncounted: 0 };

  const alone: Counters = {
    ...memory,
    add: (...counted) => {
      totals.counted_alone += 1;
      warn('The shared rate counters do not answer: this process counts for itself.');
      return memory.add(...counted);
    },
  };
  const rules = policies.map((policy): Rule => ({
    policy,
    limiter:
      shared === undefined ? new MemoryLimiter(policy, memory) : insured(shared(policy), policy, alone),
  }));

  /**
   * The library rejects with its result when the limit is passed, and with an Error when counting failed. If no counter
   * answers, requests pass: a broken counter must not be an outage of everything else.
   */
  const consume = async ({ limiter }: Rule, address: string): Promise<Outcome | undefined> => {
    try {
      return { isRefused: false, result: await limiter.consume(address) };
    } catch (thrown) {
      if (!(thrown instanceof Error)) return { isRefused: true, result: thrown as RateLimiterRes };
      totals.uncounted += 1;
      warn('Requests are not counted: every rate counter fails.', thrown);
      return undefined;
    }
  };

  const refusal = (policy: Policy, result: RateLimiterRes): Refused => {
    const blockStarted = result.consumedPoints === policy.limit + 1;
    if (blockStarted) totals.blocks_started += 1;
    return { policy, retryAfter: secondsOf(result), blockStarted };
  };

  return {
    policies,
    /** What one policy refuses is not counted by the next: requests in a block do not bring about another one. */
    count: async (method, path, address) => {
      const applying = rules.filter(({ policy }) => appliesTo(policy, method, path));
      const policyField = listOf(applying.map(({ policy }) => quotaOf(policy)));
      const states: string[] = [];
      for (const rule of applying) {
        const outcome = await consume(rule, address);
        if (outcome === undefined) continue;
        states.push(stateOf(rule.policy, outcome));
        if (outcome.isRefused)
          return { policyField, stateField: listOf(states), refused: refusal(rule.policy, outcome.result) };
      }
      return { policyField, stateField: listOf(states) };
    },
    status: () => ({ counters_kept: memory.kept(), counters_dropped: memory.dropped(), ...totals }),
  };
};
