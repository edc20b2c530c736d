import type { ApplicationDocument, KeyDocument } from '../../projections/applications';
import { isoNow } from '../clock';
import { isExpired } from '../domain/authority';

/** How commands show keys. The key itself is never among it. */

/** Whether what a key belongs to is deleted, which makes the key useless. */
export interface Owners {
  readonly tenantDeleted: boolean;
  readonly deletedApplications: ReadonlySet<string>;
}

export const ownersOf = (
  tenant: { readonly deleted_at?: string },
  applications: readonly ApplicationDocument[],
): Owners => ({
  tenantDeleted: tenant.deleted_at !== undefined,
  deletedApplications: new Set(
    applications.filter((one) => one.deleted_at !== undefined).map((one) => one.id),
  ),
});

export const statusOf = (
  key: Pick<KeyDocument, 'revoked_at' | 'expires_at' | 'application_id'>,
  { tenantDeleted, deletedApplications }: Owners,
): string => {
  if (key.revoked_at !== undefined) return 'revoked';
  if (isExpired(key.expires_at, isoNow())) return 'expired';
  if (tenantDeleted) return 'tenant_deleted';
  return deletedApplications.has(key.application_id) ? 'application_deleted' : 'active';
};

export const keyView = (key: KeyDocument, owners: Owners, lastUse: string | undefined) => ({
  key_id: key.id,
  application_id: key.application_id,
  name: key.name ?? null,
  status: statusOf(key, owners),
  created_at: key.created_at,
  expires_at: key.expires_at ?? null,
  revoked_at: key.revoked_at ?? null,
  last_used_at: lastUse ?? null,
});
