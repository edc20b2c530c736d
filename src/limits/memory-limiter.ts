import { RateLimiterRes } from 'rate-limiter-flexible';
import RateLimiterStoreAbstract = require('rate-limiter-flexible/lib/RateLimiterStoreAbstract');
import type { Count, Counters } from './counters';
import { limiterOptions, type Policy } from './policies';

/**
 * The library's own memory store has a timer per key and is unbounded, so this uses a store of our own. The library
 * documents how: a subclass with these four methods.
 */
export class MemoryLimiter extends RateLimiterStoreAbstract {
  readonly counters: Counters;

  constructor(policy: Policy, counters: Counters) {
    super({ ...limiterOptions(policy), storeClient: counters });
    this.counters = counters;
  }

  async _upsert(key: string, points: number, ms: number, isBlock: boolean): Promise<Count> {
    return isBlock ? this.counters.block(key, points, ms) : this.counters.add(key, points, ms);
  }

  async _get(key: string): Promise<Count | null> {
    return this.counters.get(key) ?? null;
  }

  async _delete(key: string): Promise<boolean> {
    return this.counters.remove(key);
  }

  _getRateLimiterRes(_key: string, changed: number, { points, endsAt }: Count): RateLimiterRes {
    const remaining = Math.max(this.points - points, 0);
    return new RateLimiterRes(
      remaining,
      Math.max(endsAt - this.counters.now(), 0),
      points,
      points === changed,
    );
  }
}
