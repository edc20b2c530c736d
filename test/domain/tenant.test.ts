import type { TenantEvent } from '../../src/domain/events';
import { changePlan, createTenant, deleteTenant, updateTenant, type Decide } from '../../src/domain/tenant';
import { OWNER, given, tenantAfter } from '../support/given';
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
): TenantEvent => ({
  type: 'TenantUpdated',
  data: { name, settings },
});

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

describe('an impossible history', () => {
  const applicationUpdated: TenantEvent = {
    type: 'ApplicationUpdated',
    data: { applicationId: APPLICATION, name: 'x', permissions: [] },
  };

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
