import type { TenantEvent } from '../../src/domain/events';
import { copyFor, evolve, type Tenant } from '../../src/domain/tenant';
import { minute, OWNER, recordedAt, tenantAfter } from '../support/given';

const APPLICATION = '00000000-0000-4000-8000-000000000010';
const OTHER = '00000000-0000-4000-8000-000000000011';
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

const updated = (name: string): TenantEvent => ({
  type: 'ApplicationUpdated',
  data: { applicationId: APPLICATION, name, permissions: ['log:read'] },
});
const expiring = (n: number): TenantEvent => ({
  type: 'KeyExpirySet',
  data: { keyId: keyId(n), applicationId: APPLICATION, expiresAt: minute(99) },
});
const otherApplication: readonly TenantEvent[] = [
  {
    type: 'ApplicationCreated',
    data: { applicationId: OTHER, name: 'Other', applicationType: 'private', permissions: [] },
  },
  { type: 'KeyAdded', data: { keyId: keyId(9), applicationId: OTHER, digest: digestOf(9), name: 'Ninth' } },
];
const deletedApplication: TenantEvent = { type: 'ApplicationDeleted', data: { applicationId: APPLICATION } };

const history = [
  ...beginning,
  added(1),
  added(2),
  revoked(1),
  updated('New'),
  expiring(2),
  added(3),
  revoked(3),
  revoked(3),
  ...otherApplication,
  deletedApplication,
  revoked(2),
];

/** What a copy for an event has: the Tenant itself, and the Application that the event is about. */
const partOf = (tenant: Tenant, { data }: TenantEvent) => {
  if (tenant.status === 'absent') return tenant;
  const id = 'applicationId' in data ? data.applicationId : '';
  const { keys: _keys, applications, ...own } = tenant;
  return structuredClone({ ...own, application: applications.get(id) });
};

describe('a copy of a tenant for an event', () => {
  it.each(history.map((event, n) => [n, event.type, event] as const))(
    'evolves by event %i, a %s, as the tenant itself does',
    (n, _, event) => {
      const recorded = recordedAt(event, n);
      const copy = copyFor([event], tenantAfter(history.slice(0, n)));
      expect(partOf(evolve(copy, recorded), event)).toEqual(
        partOf(tenantAfter(history.slice(0, n + 1)), event),
      );
    },
  );

  it('does not change with the tenant, nor the tenant with it', () => {
    for (const [n, event] of history.entries()) {
      const before = structuredClone(tenantAfter(history.slice(0, n)));
      const tenant = tenantAfter(history.slice(0, n));
      const copy = copyFor([event], tenant);
      const copied = structuredClone(copy);
      const evolved = structuredClone(evolve(copyFor([event], tenant), recordedAt(event, n)));
      expect(tenant).toEqual(before);
      evolve(tenant, recordedAt(event, n));
      expect(copy).toEqual(copied);
      expect(evolve(copy, recordedAt(event, n))).toEqual(evolved);
    }
  });
});
