import type { TenantEvent } from '../../src/domain/events';
import {
  changePlan,
  copyFor,
  createTenant,
  deleteTenant,
  evolve,
  updateTenant,
  type Decide,
  type Tenant,
} from '../../src/domain/tenant';
import { minute, OWNER, given, recordedAt, tenantAfter } from '../support/given';
import {
  APPLICATION,
  applicationCreated,
  applicationDeleted,
  created,
  deleted,
  keyAdded,
} from '../support/histories';

const input = { name: 'Acme', ownerId: OWNER, includedMonthlyActiveTokens: 10 };

const updated = (
  name: string,
  settings = { fingerprintTokens: false, deduplicateTokens: false },
): TenantEvent => ({ type: 'TenantUpdated', data: { name, settings } });

describe('creating a tenant', () => {
  it('is refused if it exists', () => {
    given(created).when(createTenant(input)).thenRefuses('already_exists');
  });

  it('is refused if it was deleted: ids are not reused', () => {
    given(created, deleted).when(createTenant(input)).thenRefuses('already_exists');
  });
});

describe('deleting a tenant', () => {
  it('keeps everything except its active status', () => {
    const history = [created, applicationCreated(), keyAdded()];
    const tenant = given(...history)
      .when(deleteTenant())
      .then(deleted);
    expect(tenant).toEqual({ ...tenantAfter(history), status: 'deleted' });
  });
});

describe('a tenant that does not exist or was deleted', () => {
  const decisions: readonly [string, Decide][] = [
    ['updateTenant', updateTenant({ name: 'New', settings: {} })],
    ['changePlan', changePlan(1)],
    ['deleteTenant', deleteTenant()],
  ];

  it.each(decisions)('refuses %s', (_, decide) => {
    given().when(decide).thenRefuses('tenant_not_found');
    given(created, deleted).when(decide).thenRefuses('tenant_deleted');
  });
});

const applicationUpdated: TenantEvent = {
  type: 'ApplicationUpdated',
  data: { applicationId: APPLICATION, name: 'x', permissions: ['log:read'] },
};

describe('an impossible history', () => {
  it.each<[string, readonly TenantEvent[], string]>([
    ['starts in the middle', [updated('Acme')], 'absent'],
    ['creates twice', [created, created], 'second time'],
    ['continues after the deletion', [created, deleted, updated('Acme')], 'deleted'],
    ['deletes twice', [created, deleted, deleted], 'deleted'],
    ['updates an Application that does not exist', [created, applicationUpdated], 'has no Application'],
    [
      'updates a deleted Application',
      [created, applicationCreated(), applicationDeleted, applicationUpdated],
      'has no Application',
    ],
  ])('is detected if it %s', (_, history, reason) => {
    expect(() => tenantAfter(history)).toThrow(reason);
  });
});

/** What a copy for an event has: the Tenant itself, and the Application that the event is about. */
const partOf = (tenant: Tenant, { data }: TenantEvent) => {
  if (tenant.status === 'absent') return tenant;
  const id = 'applicationId' in data ? data.applicationId : '';
  const { keys: _keys, applications, ...own } = tenant;
  return structuredClone({ ...own, application: applications.get(id) });
};

describe('a copy of a tenant for an event', () => {
  const OTHER = '00000000-0000-4000-8000-000000000011';
  const keyId = (n: number): string => `00000000-0000-4000-a000-${String(n).padStart(12, '0')}`;
  const added = (n: number, applicationId = APPLICATION): TenantEvent => ({
    type: 'KeyAdded',
    data: { keyId: keyId(n), applicationId, digest: n.toString(16).padStart(64, 'e'), name: `Key ${n}` },
  });
  const revoked = (n: number): TenantEvent => ({
    type: 'KeyRevoked',
    data: { keyId: keyId(n), applicationId: APPLICATION },
  });
  const history: readonly TenantEvent[] = [
    created,
    applicationCreated(),
    added(1),
    added(2),
    revoked(1),
    applicationUpdated,
    {
      type: 'KeyExpirySet',
      data: { keyId: keyId(2), applicationId: APPLICATION, expiresAt: minute(99) },
    },
    added(3),
    revoked(3),
    revoked(3),
    {
      type: 'ApplicationCreated',
      data: { applicationId: OTHER, name: 'Other', applicationType: 'private', permissions: [] },
    },
    added(9, OTHER),
    applicationDeleted,
    revoked(2),
  ];

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
