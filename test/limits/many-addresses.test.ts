import { readPolicies } from '../../src/limits/policies';
import { rateLimits } from '../../src/limits/rate-limits';

/** The short form of address-campaign.ts, without HTTP. */
const ADDRESSES = 210_000;

describe('a great many addresses', () => {
  it('exhaust neither the counters nor the memory, and unblock nobody', async () => {
    const { count, status } = rateLimits(readPolicies('global=2/3600/3600')!, { report: () => undefined });
    for (let i = 0; i < 3; i += 1) await count('GET', '/', 'blocked');
    // Sliced from a long text, as an address is from a header: the long text must not be retained with it.
    const header = Buffer.alloc(2_000, 'x');
    const from = (number: number): string => {
      header.write(String(number).padStart(20, '.'), 0, 'latin1');
      return header.toString('latin1').slice(0, 20);
    };
    const before = process.memoryUsage().rss;
    for (let number = 0; number < ADDRESSES; number += 1) await count('GET', '/', from(number));
    const grown = (process.memoryUsage().rss - before) / 1_048_576;
    expect(status()).toMatchObject({ counters_kept: 200_000, counters_dropped: ADDRESSES + 1 - 200_000 });
    expect((await count('GET', '/', 'blocked')).refused).toBeDefined();
    expect((await count('GET', '/', from(ADDRESSES - 1))).stateField).toMatch(/r=0/);
    expect((await count('GET', '/', from(0))).stateField).toMatch(/r=1/);
    expect(grown).toBeLessThan(150);
  });
});
