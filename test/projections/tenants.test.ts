import { findTenant, tenants } from '../../projections/tenants';
import type { TenantEvent } from '../../src/domain/events';
import { by, given, of, OTHER_TENANT, TENANT, time, USER } from './given';

const OWNER = 'dddddddd-0000-4000-8000-000000000004';
const FRIEND = 'eeeeeeee-0000-4000-8000-000000000005';

const created: TenantEvent = {
  type: 'TenantCreated',
  data: {
    name: 'Acme',
    ownerId: OWNER,
    settings: { fingerprintTokens: false, deduplicateTokens: true },
    includedMonthlyActiveTokens: 250,
  },
};
const updated = (name: string, fingerprintTokens = false): TenantEvent => ({
  type: 'TenantUpdated',
  data: { name, settings: { fingerprintTokens, deduplicateTokens: false } },
});
const planChanged: TenantEvent = { type: 'TenantPlanChanged', data: { includedMonthlyActiveTokens: 9 } };
const deleted: TenantEvent = { type: 'TenantDeleted', data: {} };

const asCreated = {
  id: TENANT,
  owner_id: OWNER,
  name: 'Acme',
  settings: { fingerprint_tokens: false, deduplicate_tokens: true },
  created_by: USER,
  created_at: time(1),
  revision: 0,
  included_monthly_active_tokens: 250,
};

describe('the tenants projection', () => {
  it('given TenantCreated, then the tenant as created', async () => {
    const { reader } = await given(tenants, created);
    expect(await findTenant(reader, TENANT)).toEqual(asCreated);
  });

  it('given TenantUpdated, then the new name and settings, by whom, when, and a new revision', async () => {
    const { reader } = await given(tenants, created, by(FRIEND, updated('Umbrella', true)));
    expect(await findTenant(reader, TENANT)).toEqual({
      ...asCreated,
      name: 'Umbrella',
      settings: { fingerprint_tokens: true, deduplicate_tokens: false },
      modified_by: FRIEND,
      modified_at: time(2),
      revision: 1,
    });
  });

  it('given TenantDeleted, then the tenant is marked as deleted, not removed', async () => {
    const { reader } = await given(tenants, created, deleted);
    expect(await findTenant(reader, TENANT)).toEqual({ ...asCreated, deleted_at: time(2) });
  });

  it('given events of two tenants, then each has its own state', async () => {
    const { reader, documents } = await given(
      tenants,
      created,
      of(OTHER_TENANT, created),
      of(OTHER_TENANT, updated('Other')),
    );
    expect((await findTenant(reader, TENANT))?.name).toBe('Acme');
    expect(await findTenant(reader, OTHER_TENANT)).toMatchObject({
      id: OTHER_TENANT,
      name: 'Other',
      revision: 1,
    });
    expect(await documents('tenants')).toHaveLength(1);
  });

  it.each([updated('Nobody'), planChanged, deleted])(
    'given $type alone, then the tenant is parked',
    async (event) => {
      const { parked, documents } = await given(tenants, event, of(OTHER_TENANT, created));
      expect(await parked()).toMatch(/tenants\/self is missing/);
      expect(await documents('tenants')).toEqual([]);
      expect(await documents('tenants', OTHER_TENANT)).toHaveLength(1);
    },
  );
});
