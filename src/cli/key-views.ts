import type { KeyDocument } from '../../projections/applications';
import { isoNow } from '../async/clock';
import { isExpired } from '../domain/authority';
import { applicationsOf, keysOf, knownTenant } from './lookups';
import type { OperatorSession } from './operator-session';

/** Whether the owners of a key are deleted, which makes it unusable. */
interface Owners {
  readonly isTenantDeleted: boolean;
  readonly isApplicationDeleted: boolean;
}

export const statusOf = (
  { revoked_at, expires_at }: Pick<KeyDocument, 'revoked_at' | 'expires_at'>,
  { isTenantDeleted, isApplicationDeleted }: Owners,
): string => {
  if (revoked_at !== undefined) return 'revoked';
  if (isExpired(expires_at, isoNow())) return 'expired';
  if (isTenantDeleted) return 'tenant_deleted';
  return isApplicationDeleted ? 'application_deleted' : 'active';
};

const viewOf = (key: KeyDocument, owners: Owners, lastUse: string | undefined) => ({
  key_id: key.id,
  application_id: key.application_id,
  name: key.name ?? null,
  status: statusOf(key, owners),
  created_at: key.created_at,
  expires_at: key.expires_at ?? null,
  revoked_at: key.revoked_at ?? null,
  last_used_at: lastUse ?? null,
});

export type KeyView = ReturnType<typeof viewOf>;

/** All keys of a tenant, without the keys themselves. */
export const keyViewsOf = async (session: OperatorSession, tenantId: string): Promise<readonly KeyView[]> => {
  const isTenantDeleted = (await knownTenant(session, tenantId)).deleted_at !== undefined;
  const applications = await applicationsOf(session, tenantId);
  const deleted = new Set(
    applications.filter(({ deleted_at }) => deleted_at !== undefined).map(({ id }) => id),
  );
  const lastUses = await session.app.keyUses.lastUses(tenantId);
  return (await keysOf(session, tenantId)).map((key) => {
    const isApplicationDeleted = deleted.has(key.application_id);
    return viewOf(key, { isTenantDeleted, isApplicationDeleted }, lastUses.get(key.id));
  });
};
