import type { TenantEvent } from '../../src/domain/events';
import { changePlan, createTenant, deleteTenant, updateTenant, type Decide } from '../../src/domain/tenant';
import { ACTOR, OWNER, TENANT, given, minute, tenantAfter } from '../support/given';
import {
  APPLICATION,
  applicationCreated,
  applicationDeleted,
  created,
  deleted,
  keyAdded,
} from '../support/histories';

const input = { name: 'Acme', ownerId: OWNER, includedMonthlyActiveTokens: 10 };
const on = { fingerprintTokens: true, deduplicateTokens: true };

const updated = (
  name: string,
  settings = { fingerprintTokens: false, deduplicateTokens: false },
): TenantEvent => ({
  type: 'TenantUpdated',
  data: { name, settings },
});

describe('creating a tenant', () => {
  it('starts with both settings off', () => {
    expect(given().when(createTenant(input)).then(created)).toEqual({
      status: 'active',
      id: TENANT,
      ...input,
      settings: { fingerprintTokens: false, deduplicateTokens: false },
      created: { at: minute(0), by: ACTOR },
      changedAt: 0,
      applications: new Map(),
      keys: new Map(),
      revokedKeys: 0,
    });
  });

  it('is refused if it exists', () => {
    given(created).when(createTenant(input)).thenRefuses('already_exists');
  });

  it('is refused if it was deleted: ids are not reused', () => {
    given(created, deleted).when(createTenant(input)).thenRefuses('already_exists');
  });

  it('is refused with a bad name', () => {
    given()
      .when(createTenant({ ...input, name: ' ' }))
      .thenRefuses('validation_failed');
  });
});

describe('updating a tenant', () => {
  it('records the whole name and settings, and changes the ETag', () => {
    const tenant = given(created)
      .when(updateTenant({ name: 'Other', settings: on }))
      .then(updated('Other', on));
    expect(tenant).toMatchObject({
      name: 'Other',
      settings: on,
      created: { at: minute(0), by: ACTOR },
      modified: { at: minute(1), by: ACTOR },
      changedAt: 1,
    });
  });

  it.each([
    [{}, { fingerprintTokens: true, deduplicateTokens: false }],
    [{ deduplicateTokens: true }, { fingerprintTokens: true, deduplicateTokens: true }],
    [{ fingerprintTokens: false }, { fingerprintTokens: false, deduplicateTokens: false }],
  ])('merges the settings %j into the current ones', (settings, expected) => {
    given(created, updated('Acme', { fingerprintTokens: true, deduplicateTokens: false }))
      .when(updateTenant({ name: 'Acme', settings }))
      .then(updated('Acme', expected));
  });

  it('is an event even if nothing changes', () => {
    const tenant = given(created, updated('Acme'))
      .when(updateTenant({ name: 'Acme', settings: {} }))
      .then(updated('Acme'));
    expect(tenant).toMatchObject({ changedAt: 2 });
  });

  it('is refused with a bad name', () => {
    given(created)
      .when(updateTenant({ name: '', settings: {} }))
      .thenRefuses('validation_failed');
  });
});

describe('changing the plan', () => {
  it('does not change the ETag', () => {
    const tenant = given(created, updated('New'))
      .when(changePlan(500))
      .then({ type: 'TenantPlanChanged', data: { includedMonthlyActiveTokens: 500 } });
    expect(tenant).toMatchObject({ includedMonthlyActiveTokens: 500, changedAt: 1, name: 'New' });
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
    ['updates an Application that does not exist', [created, applicationUpdated], 'does not exist'],
    [
      'updates a deleted Application',
      [created, applicationCreated(), applicationDeleted, applicationUpdated],
      'does not exist',
    ],
  ])('is detected if it %s', (_, history, reason) => {
    expect(() => tenantAfter(history)).toThrow(reason);
  });
});
