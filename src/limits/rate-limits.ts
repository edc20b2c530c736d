import type { Db } from 'mongodb';
import {
  RateLimiterMemory,
  RateLimiterMongo,
  RateLimiterRes,
  RLWrapperTimeouts,
  type RateLimiterAbstract,
} from 'rate-limiter-flexible';
import type { Policy } from './policies';

/** The policy that refuses a request, the seconds to wait, and whether the request started the block. */
export interface LimitExceeded {
  readonly policy: Policy;
  readonly retryAfter: number;
  readonly blockStarted: boolean;
}

const optionsOf = ({ name, limit, windowSeconds, blockSeconds }: Policy) => ({
  keyPrefix: name,
  points: limit,
  duration: windowSeconds,
  blockDuration: blockSeconds,
});

/** Makes the limiter of a policy whose counters all instances share. */
export type SharedLimiter = (policy: Policy) => RateLimiterAbstract;

/** Counts may be lost in a failover, so writes wait neither for the disk nor for other servers. */
export const mongoLimiter = async ({ client, databaseName }: Db): Promise<SharedLimiter> => {
  const common = {
    storeClient: client.db(databaseName, { writeConcern: { w: 1, journal: false } }),
    tableName: 'rate_counters',
    disableIndexesCreation: true,
  };
  await new RateLimiterMongo({ ...common, points: 1, duration: 1 }).createIndexes();
  // A block begins with one request too many. The next one learns from the store how long it lasts; further ones from memory.
  return (policy) =>
    new RateLimiterMongo({ ...common, ...optionsOf(policy), inMemoryBlockOnConsumed: policy.limit + 2 });
};

const ALONE = 'The shared rate counters do not respond: this instance counts requests on its own.';

export interface RateLimitsOptions {
  /** Undefined: this process counts on its own. */
  readonly shared: SharedLimiter | undefined;
  /** A request waits no longer than this for the shared counters. */
  readonly sharedWithinMs: number;
  /** The status shows for this long that they did not respond. */
  readonly shownAloneMs: number;
  readonly report: (what: string, error: Error) => void;
}

/**
 * Percent-decoded, since whoever serves the path decodes it too. Byte by byte, which cannot fail: what is malformed
 * stays as it is.
 */
const decoded = (path: string): string =>
  path.includes('%')
    ? path
        .replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
        .replace(/(?<=.)\/$/, '')
    : path;

const covers = (pattern: string, path: string): boolean =>
  pattern === '*' || pattern === path || (pattern.endsWith('/*') && path.startsWith(pattern.slice(0, -1)));

/** Whether a policy applies to a method and a path as sent, without a trailing slash. */
const appliesTo = ({ methods, paths }: Policy, method: string, path: string): boolean =>
  (methods[0] === '*' || methods.includes(method === 'HEAD' ? 'GET' : method)) &&
  paths.some((pattern) => covers(pattern, decoded(path)));

/** Copies a text: a substring of a header would keep the whole header in memory. */
const copyOf = (text: string): string => Buffer.from(text, 'latin1').toString('latin1');

/** Rounded up, so that a client that waits this long is not too early. */
const secondsOf = ({ msBeforeNext }: RateLimiterRes): number => Math.max(1, Math.ceil(msBeforeNext / 1_000));

/** What a limiter counted, and whether that is too many: then the library rejects, with the same kind of result. */
const countOf = (counting: Promise<RateLimiterRes>): Promise<readonly [RateLimiterRes, boolean]> =>
  counting.then(
    (result) => [result, false],
    (result: unknown) => {
      if (!(result instanceof RateLimiterRes)) throw result;
      return [result, true];
    },
  );

/** Those that apply to a request, without those that others replace. Whose it is, is asked only if that matters. */
const countingOf = async <R extends { readonly policy: Policy }>(
  covering: readonly R[],
  isOfService: () => Promise<boolean>,
): Promise<readonly R[]> => {
  const mustAsk = covering.some(({ policy }) => policy.ofServices);
  const isOther = mustAsk && !(await isOfService());
  const applying = isOther ? covering.filter(({ policy }) => policy.ofServices !== true) : covering;
  return applying.filter((rule) => !applying.some(({ policy }) => policy.replaces === rule.policy.name));
};

export const rateLimits = (
  policies: readonly Policy[],
  { shared, sharedWithinMs, shownAloneMs, report }: RateLimitsOptions,
) => {
  /** How many blocks were started, and how often a limit counted in memory because the shared counters did not respond. */
  const totals = { blocks_started: 0, counted_alone: 0 };
  let aloneUntil = -Infinity;
  const counterOf = (policy: Policy) => {
    const alone = new RateLimiterMemory(optionsOf(policy));
    if (shared === undefined) return (address: string) => countOf(alone.consume(address));
    const together = new RLWrapperTimeouts({ limiter: shared(policy), timeoutMs: sharedWithinMs });
    return (address: string) =>
      countOf(together.consume(address)).catch((error: Error) => {
        totals.counted_alone += 1;
        aloneUntil = performance.now() + shownAloneMs;
        report(ALONE, error);
        return countOf(alone.consume(address));
      });
  };
  // The fields are those of draft-ietf-httpapi-ratelimit-headers-10.
  const rules = policies.map((policy) => ({
    policy,
    quota: `"${policy.name}";q=${policy.limit};w=${policy.windowSeconds}`,
    countIn: counterOf(policy),
  }));
  return {
    policies,
    /**
     * The fields of the response, unless nothing is counted. A request that one policy refuses is not counted by the
     * next: requests during a block must not start another.
     */
    count: async (method: string, path: string, address: string, isOfService = async () => false) => {
      const covering = rules.filter(({ policy }) => appliesTo(policy, method, path));
      const counting = await countingOf(covering, isOfService);
      if (counting.length === 0) return {};
      const states: string[] = [];
      let refused: LimitExceeded | undefined;
      for (const { policy, countIn } of counting) {
        const [result, isRefused] = await countIn(copyOf(address));
        const retryAfter = secondsOf(result);
        states.push(`"${policy.name}";r=${isRefused ? 0 : result.remainingPoints};t=${retryAfter}`);
        if (!isRefused) continue;
        const blockStarted = policy.blockSeconds > 0 && result.consumedPoints === policy.limit + 1;
        refused = { policy, retryAfter, blockStarted };
        break;
      }
      if (refused?.blockStarted === true) totals.blocks_started += 1;
      const policyField = counting.map(({ quota }) => quota).join(', ');
      const fields = { 'RateLimit-Policy': policyField, RateLimit: states.join(', ') };
      return refused === undefined ? { fields } : { fields, refused };
    },
    status: () => ({ shared: shared !== undefined && performance.now() > aloneUntil, ...totals }),
  };
};

export type RateLimits = ReturnType<typeof rateLimits>;
export type RateLimitsStatus = ReturnType<RateLimits['status']>;
