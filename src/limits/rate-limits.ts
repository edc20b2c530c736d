import type { RateLimiterAbstract } from 'rate-limiter-flexible';
import RLWrapperTimeouts = require('rate-limiter-flexible/lib/RLWrapperTimeouts');
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
  /** At once where this process counts for itself and no limit is passed. */
  count(method: string, path: string, address: string): Counted | Promise<Counted>;
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
  /** Counters fail: told at most once a minute. */
  readonly onTrouble: (what: string, error?: unknown) => void;
}

/** Memory for a process: an attacker with many addresses must not fill it. */
export const MOST_COUNTERS = 200_000;

/** A request waits no longer than this for the shared counters. */
const SHARED_WITHIN_MS = 250;
const TROUBLE_EVERY_MS = 60_000;

/** A limiter of the library rejects with its result when the limit is passed, and with an Error when counting failed. */
interface Result {
  readonly msBeforeNext: number;
  readonly remainingPoints: number;
  readonly consumedPoints: number;
}

interface Rule {
  readonly policy: Policy;
  readonly limiter: RateLimiterAbstract;
}

/** The rules for a request, always in the order of the table, and what the answers say about them. */
interface RuleSet {
  readonly rules: readonly Rule[];
  readonly field: string | undefined;
}

interface Outcome {
  readonly refused: boolean;
  readonly result: Result;
}

/** As in draft-ietf-httpapi-ratelimit-headers-10: quota and window; what is left of it, and for how long. */
const quotaOf = ({ name, limit, windowSeconds }: Policy): string => `"${name}";q=${limit};w=${windowSeconds}`;

/** Whole seconds, rounded up: whoever waits that long is not too early. */
const secondsOf = ({ msBeforeNext }: Result): number => Math.max(1, Math.ceil(msBeforeNext / 1_000));

const stateOf = ({ name }: Policy, left: number, result: Result): string =>
  `"${name}";r=${left};t=${secondsOf(result)}`;

const joined = (fields: string | undefined, field: string): string =>
  fields === undefined ? field : `${fields}, ${field}`;

/** Undefined: it has to be waited for, or it fails, which is not told here. */
const countNow = ({ limiter }: Rule, address: string): Result | undefined => {
  try {
    return limiter instanceof MemoryLimiter ? limiter.countWithin(address) : undefined;
  } catch {
    return undefined;
  }
};

const ruleSets = (rules: readonly Rule[]) => {
  const known = new Map<number, RuleSet>();
  const make = (set: number): RuleSet => {
    const chosen = rules.filter((_, bit) => (set & (1 << bit)) !== 0);
    const field = chosen.map(({ policy }) => quotaOf(policy)).join(', ');
    return { rules: chosen, field: field === '' ? undefined : field };
  };
  return (method: string, path: string): RuleSet => {
    let set = 0;
    for (let bit = 0; bit < rules.length; bit += 1)
      if (appliesTo((rules[bit] as Rule).policy, method, path)) set |= 1 << bit;
    const found = known.get(set) ?? make(set);
    known.set(set, found);
    return found;
  };
};

/** Says the same trouble once in a while, not at every request. */
const seldom = (tell: RateLimitsParts['onTrouble']): RateLimitsParts['onTrouble'] => {
  const last = new Map<string, number>();
  return (what, error) => {
    const at = performance.now();
    if (at - (last.get(what) ?? -Infinity) < TROUBLE_EVERY_MS) return;
    last.set(what, at);
    tell(what, error);
  };
};

/** Shared counters with memory as their insurance: a store that fails or does not answer stops nobody. */
const insured = (
  shared: RateLimiterAbstract,
  policy: Policy,
  insurance: MemoryLimiter,
): RateLimiterAbstract =>
  new RLWrapperTimeouts({
    limiter: shared,
    timeoutMs: SHARED_WITHIN_MS,
    insuranceLimiter: insurance,
    // The wrapper hands its own on to the insurance.
    blockDuration: policy.blockSeconds,
  });

export const rateLimits = (policies: readonly Policy[], parts: RateLimitsParts): RateLimits => {
  const { shared, memory = boundedCounters(MOST_COUNTERS) } = parts;
  const onTrouble = seldom(parts.onTrouble);
  const totals = { blocks_started: 0, counted_alone: 0, uncounted: 0 };

  const alone: Counters = {
    ...memory,
    add: (...counted) => {
      totals.counted_alone += 1;
      onTrouble('The shared rate counters do not answer: this process counts for itself.');
      return memory.add(...counted);
    },
  };
  const limiterOf = (policy: Policy): RateLimiterAbstract =>
    shared === undefined
      ? new MemoryLimiter(policy, memory)
      : insured(shared(policy), policy, new MemoryLimiter(policy, alone));
  const rulesFor = ruleSets(policies.map((policy) => ({ policy, limiter: limiterOf(policy) })));

  /** If no counter answers, requests pass: a broken counter must not be an outage of everything else. */
  const uncounted = (error: Error): undefined => {
    totals.uncounted += 1;
    onTrouble('Requests are not counted: every rate counter fails.', error);
  };

  const consume = async ({ limiter }: Rule, address: string): Promise<Outcome | undefined> => {
    try {
      return { refused: false, result: await limiter.consume(address) };
    } catch (thrown) {
      if (thrown instanceof Error) return uncounted(thrown);
      return { refused: true, result: thrown as Result };
    }
  };

  const refusal = (policy: Policy, result: Result): Refused => {
    const blockStarted = result.consumedPoints === policy.limit + 1;
    if (blockStarted) totals.blocks_started += 1;
    return { policy, retryAfter: secondsOf(result), blockStarted };
  };

  /** What one policy refuses is not counted by the next: requests in a block do not bring about another one. */
  const countFrom = async (
    set: RuleSet,
    at: number,
    before: string | undefined,
    address: string,
  ): Promise<Counted> => {
    let stateField = before;
    for (const rule of set.rules.slice(at)) {
      const outcome = await consume(rule, address);
      if (outcome === undefined) continue;
      const { refused, result } = outcome;
      stateField = joined(stateField, stateOf(rule.policy, refused ? 0 : result.remainingPoints, result));
      if (refused) return { policyField: set.field, stateField, refused: refusal(rule.policy, result) };
    }
    return { policyField: set.field, stateField };
  };

  return {
    policies,
    count: (method, path, address) => {
      const set = rulesFor(method, path);
      let stateField: string | undefined;
      for (let at = 0; at < set.rules.length; at += 1) {
        const rule = set.rules[at] as Rule;
        const result = countNow(rule, address);
        if (result === undefined) return countFrom(set, at, stateField, address);
        stateField = joined(stateField, stateOf(rule.policy, result.remainingPoints, result));
      }
      return { policyField: set.field, stateField };
    },
    status: () => ({ counters_kept: memory.kept(), counters_dropped: memory.dropped(), ...totals }),
  };
};
