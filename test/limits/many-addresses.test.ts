import { readPolicies } from '../../src/limits/policies';
import { rateLimits } from '../../src/limits/rate-limits';

/** What one process can receive in about 20 s: a window, and a block. A campaign sets more. */
const ADDRESSES = Number(process.env['ADDRESSES'] ?? '250000');
const MAX_MEGABYTES = ADDRESSES / 1_250;

describe('a great many addresses', () => {
  it('do not exhaust the memory, and unblock nobody', async () => {
    const options = { shared: undefined, sharedWithinMs: 200, shownAloneMs: 10_000, report: () => undefined };
    const { count } = rateLimits(readPolicies('global=2/3600/3600')!, options);
    for (let i = 0; i < 3; i += 1) await count('GET', '/', 'blocked');
    // Sliced from a long text, as an address is from a header: the long text must not be retained with it.
    const header = Buffer.alloc(2_000, 'x');
    const from = (number: number): string => {
      header.write(String(number).padStart(20, '.'), 0, 'latin1');
      return header.toString('latin1').slice(0, 20);
    };
    const before = process.memoryUsage().rss;
    for (let number = 0; number < ADDRESSES; number += 1) await count('GET', '/', from(number));
    expect((process.memoryUsage().rss - before) / 1_048_576).toBeLessThan(MAX_MEGABYTES);
    expect((await count('GET', '/', 'blocked')).refused).toBeDefined();
    for (const number of [0, ADDRESSES - 1])
      expect((await count('GET', '/', from(number))).fields?.RateLimit).toMatch(/r=0/);
  });
});
