import RateLimiterRes = require('rate-limiter-flexible/lib/RateLimiterRes');
import RateLimiterStoreAbstract = require('rate-limiter-flexible/lib/RateLimiterStoreAbstract');
import type { Count, Counters } from './counters';
import type { Policy } from './policies';

/** What every limiter of the library is told about a policy, wherever it counts. */
export const limiterOptions = ({ name, limit, windowSeconds, blockSeconds }: Policy) => ({
  keyPrefix: name,
  points: limit,
  duration: windowSeconds,
  blockDuration: blockSeconds,
});

/**
 * The library's own memory store has a timer for every key and no bound, so it counts in ours. A class, because that is
 * how the library takes a store; the underscored names are its.
 */
export class MemoryLimiter extends RateLimiterStoreAbstract {
  readonly counters: Counters;

  constructor(policy: Policy, counters: Counters) {
    super({ ...limiterOptions(policy), storeClient: counters });
    this.counters = counters;
  }

  /**
   * Counts at once where the limit is not passed: there is nothing to decide and nothing to wait for. Undefined: nothing
   * is counted yet, the library does and decides.
   */
  countWithin(address: string): RateLimiterRes | undefined {
    const key = this.getKey(address);
    const count = this.counters.addWithin(key, this.points, this.duration * 1_000);
    return count && this._getRateLimiterRes(key, 1, count);
  }

  _upsert(key: string, points: number, ms: number, begins: boolean): Promise<Count> {
    return Promise.resolve(
      begins ? this.counters.block(key, points, ms) : this.counters.add(key, points, ms),
    );
  }

  _get(key: string): Promise<Count | null> {
    return Promise.resolve(this.counters.get(key) ?? null);
  }

  _delete(key: string): Promise<boolean> {
    return Promise.resolve(this.counters.remove(key));
  }

  _getRateLimiterRes(_key: string, changed: number, { points, endsAt }: Count): RateLimiterRes {
    const left = Math.max(this.points - points, 0);
    return new RateLimiterRes(left, Math.max(endsAt - this.counters.now(), 0), points, points === changed);
  }
}
