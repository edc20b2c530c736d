import { RateLimiterRes, RLWrapperTimeouts, type RateLimiterAbstract } from 'rate-limiter-flexible';
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
  /** Whether instances count together. */
  readonly shared: boolean;
  /** Why this process counts for itself at the moment although counters are shared. */
  readonly trouble?: string;
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
  readonly shared?: ((policy: Policy) => RateLimiterAbstract) | undefined;
  readonly memory?: Counters;
  /** Without an error it is a recovery. The same failure may be reported with every request. */
  readonly report: (what: string, error?: unknown) => void;
  readonly now?: () => number;
  /** A request waits no longer than this for the shared counters. */
  readonly sharedWithinMs?: number;
}

/** Memory for a process: an attacker with many addresses must not fill it. */
const MAX_COUNTERS = 200_000;

const SHARED_WITHIN_MS = 200;
/** How long shared counters that failed are not asked again: requests must not wait for them one after the other. */
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

/** As in draft-ietf-httpapi-ratelimit-headers-10: quota and window; what is left of it, and for how long. */
const quotaOf = ({ name, limit, windowSeconds }: Policy): string => `"${name}";q=${limit};w=${windowSeconds}`;

/** Whole seconds, rounded up: whoever waits that long is not too early. */
const secondsOf = ({ msBeforeNext }: RateLimiterRes): number => Math.max(1, Math.ceil(msBeforeNext / 1_000));

const stateOf = ({ name }: Policy, { isRefused, result }: Outcome): string =>
  `"${name}";r=${isRefused ? 0 : result.remainingPoints};t=${secondsOf(result)}`;

const listOf = (fields: readonly string[]): string | undefined =>
  fields.length === 0 ? undefined : fields.join(', ');

/** Whether the shared counters are within reach. */
const reachOf = ({ report, now = () => performance.now() }: RateLimitsParts) => {
  let askAgainAt: number | undefined;

  const failed = (error: Error): void => {
    if (askAgainAt === undefined) report(ALONE, error);
    askAgainAt = now() + PAUSE_MS;
  };
  const cameBack = (): void => {
    if (askAgainAt !== undefined) report(TOGETHER);
    askAgainAt = undefined;
  };
  /** While they are lost, one request in a while asks; the answer to an earlier one does not bring them back. */
  const isAsked = (): boolean => {
    if (askAgainAt === undefined) return true;
    if (now() < askAgainAt) return false;
    askAgainAt = now() + PAUSE_MS;
    return true;
  };
  return {
    isLost: () => askAgainAt !== undefined,
    /** Undefined: they were not asked, or did not answer. */
    ask: async (question: () => Promise<Outcome | Error>): Promise<Outcome | undefined> => {
      const wasLost = askAgainAt !== undefined;
      if (!isAsked()) return undefined;
      const outcome = await question();
      if (outcome instanceof Error) failed(outcome);
      else if (wasLost) cameBack();
      return outcome instanceof Error ? undefined : outcome;
    },
  };
};

/** The library rejects with its result when the limit is passed, and with anything else when counting failed. */
const consume = async (limiter: RateLimiterAbstract, address: string): Promise<Outcome | Error> => {
  try {
    return { isRefused: false, result: await limiter.consume(address) };
  } catch (thrown) {
    if (thrown instanceof RateLimiterRes) return { isRefused: true, result: thrown };
    return thrown instanceof Error ? thrown : new Error(String(thrown), { cause: thrown });
  }
};

export const rateLimits = (policies: readonly Policy[], parts: RateLimitsParts): RateLimits => {
  const { shared, memory = boundedCounters(MAX_COUNTERS), sharedWithinMs = SHARED_WITHIN_MS } = parts;
  const reach = reachOf(parts);
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
    const outcome = await reach.ask(() => consume(limiter, address));
    if (outcome === undefined) totals.counted_alone += 1;
    return outcome;
  };

  /** Memory is the insurance. If no counter answers, requests pass: a broken counter must not be an outage. */
  const countBy = async ({ own, shared: together }: Rule, address: string): Promise<Outcome | undefined> => {
    const outcome = (together && (await consumeShared(together, address))) ?? (await consume(own, address));
    if (!(outcome instanceof Error)) return outcome;
    totals.uncounted += 1;
    parts.report('Requests are not counted: every rate counter fails.', outcome);
    return undefined;
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
        const outcome = await countBy(rule, address);
        if (outcome === undefined) continue;
        states.push(stateOf(rule.policy, outcome));
        if (outcome.isRefused)
          return { policyField, stateField: listOf(states), refused: refusal(rule.policy, outcome.result) };
      }
      return { policyField, stateField: listOf(states) };
    },
    status: () => ({
      shared: shared !== undefined,
      ...(reach.isLost() ? { trouble: ALONE } : {}),
      counters_kept: memory.kept(),
      counters_dropped: memory.dropped(),
      ...totals,
    }),
  };
};
