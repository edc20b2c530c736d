import type { TenantSettings } from '../src/domain/events';
import { tenantAsCreated, type Tenant } from '../src/domain/tenant';
import { amend, change, type Projector, type Reader } from './projector';

/** One document per tenant: the response of `GET /tenants/self`, its ETag and its plan. */
export interface TenantDocument {
  readonly id: string;
  readonly owner_id: string;
  readonly name: string;
  readonly settings: { readonly fingerprint_tokens: boolean; readonly deduplicate_tokens: boolean };
  readonly created_by?: string | undefined;
  readonly created_at: string;
  readonly modified_by?: string | undefined;
  readonly modified_at?: string | undefined;
  /** The revision of the last event that changed the Tenant itself. */
  readonly revision: number;
  readonly included_monthly_active_tokens: number;
  readonly deleted_at?: string;
}

const SELF = 'self';

const settingsOf = (settings: TenantSettings): TenantDocument['settings'] => ({
  fingerprint_tokens: settings.fingerprintTokens,
  deduplicate_tokens: settings.deduplicateTokens,
});

/** The document that the read model, which may lag behind, will have for this state of the tenant. */
export const documentOfTenant = (tenant: Exclude<Tenant, { status: 'absent' }>): TenantDocument => ({
  id: tenant.id,
  owner_id: tenant.ownerId,
  name: tenant.name,
  settings: settingsOf(tenant.settings),
  created_by: tenant.created_by,
  created_at: tenant.created_at,
  revision: tenant.revision,
  included_monthly_active_tokens: tenant.includedMonthlyActiveTokens,
  // Absent from a new one that is stored, so an update adds them here.
  modified_by: tenant.modified_by,
  modified_at: tenant.modified_at,
});

const changed = (next: (tenant: TenantDocument) => TenantDocument) =>
  amend<TenantDocument>('tenants', SELF, next);

export const tenants: Projector = {
  name: 'tenants',
  version: 1,
  collections: [{ name: 'tenants', indexes: {} }],
  on: {
    TenantCreated: (event) => [
      change<TenantDocument>('tenants', SELF, () => documentOfTenant(tenantAsCreated(event))),
    ],
    TenantUpdated: (event) => [
      changed((tenant) => ({
        ...tenant,
        name: event.data.name,
        settings: settingsOf(event.data.settings),
        modified_by: event.actor?.id,
        modified_at: event.at,
        revision: event.revision,
      })),
    ],
    TenantPlanChanged: ({ data: { includedMonthlyActiveTokens: included_monthly_active_tokens } }) => [
      changed((tenant) => ({ ...tenant, included_monthly_active_tokens })),
    ],
    TenantDeleted: (event) => [changed((tenant) => ({ ...tenant, deleted_at: event.at }))],
  },
};

export const findTenant = async (reader: Reader, tenantId: string): Promise<TenantDocument | undefined> =>
  (await reader.get(tenantId, 'tenants', SELF)) as TenantDocument | undefined;
