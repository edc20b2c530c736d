import type { TenantEvent } from '../../src/domain/events';
import { absent, type Tenant } from '../../src/domain/tenant';
import { foldingFrom } from '../../src/domain/tenant-folding';
import { OWNER, recordedAt, tenantAfter } from '../support/given';

const APPLICATION = '00000000-0000-4000-8000-000000000010';
const keyId = (n: number): string => `00000000-0000-4000-a000-${String(n).padStart(12, '0')}`;
const digestOf = (n: number): string => n.toString(16).padStart(4, '0').padEnd(64, 'e');

const beginning: readonly TenantEvent[] = [
  {
    type: 'TenantCreated',
    data: {
      name: 'Acme',
      ownerId: OWNER,
      settings: { fingerprintTokens: false, deduplicateTokens: false },
      includedMonthlyActiveTokens: 0,
    },
  },
  {
    type: 'ApplicationCreated',
    data: { applicationId: APPLICATION, name: 'App', applicationType: 'management', permissions: [] },
  },
];
const added = (n: number): TenantEvent => ({
  type: 'KeyAdded',
  data: { keyId: keyId(n), applicationId: APPLICATION, digest: digestOf(n) },
});
const revoked = (n: number): TenantEvent => ({
  type: 'KeyRevoked',
  data: { keyId: keyId(n), applicationId: APPLICATION },
});

/** Folds all events, and takes the tenant after these numbers of events. */
const folded = (events: readonly TenantEvent[], looks: readonly number[] = []): readonly Tenant[] => {
  const folding = foldingFrom(absent);
  const seen: Tenant[] = [];
  events.map(recordedAt).forEach((event, i) => {
    folding.take(event);
    if (looks.includes(i + 1)) seen.push(folding.tenant());
  });
  return [...seen, folding.tenant()];
};

describe('folding the events of a tenant', () => {
  const history = [...beginning, added(1), added(2), revoked(1), added(3), added(4), revoked(3), revoked(3)];

  it('gives the same result at once as one by one', () => {
    expect(folded(history).at(-1)).toEqual(tenantAfter(history));
  });

  it('does not modify a state that was returned', () => {
    const looks = history.map((_, i) => i + 1);
    const seen = folded(history, looks);
    looks.forEach((count, i) => expect(seen[i]).toEqual(tenantAfter(history.slice(0, count))));
  });

  it('costs as much per key with thousands of keys as with hundreds', () => {
    const milliseconds = (keys: number): number => {
      const events = [...beginning, ...Array.from({ length: keys }, (_, n) => added(n))];
      const { user } = process.cpuUsage();
      folded(events);
      return (process.cpuUsage().user - user) / 1_000;
    };
    const least = (keys: number): number => Math.min(...[1, 2, 3].map(() => milliseconds(keys)));
    least(500);
    let ratio = Infinity;
    // 32 times the keys; if each copied all the others: 68 to 100. A busy machine may need another attempt.
    for (let attempt = 0; attempt < 5 && ratio >= 55; attempt += 1)
      ratio = Math.min(ratio, least(16_000) / least(500));
    expect(ratio).toBeLessThan(55);
  });
});
