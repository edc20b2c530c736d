import { findApplication, type StoredApplication, type StoredKey } from '../../projections/applications';
import type { LastUse } from '../../projections/key-days';
import { findTenant, type TenantDocument } from '../../projections/tenants';
import { isoNow } from '../async/clock';
import { isExpired } from '../domain/authority';
import { fault } from '../fault';
import { rowsOf } from '../read-models/read-models';
import type { OperatorSession } from './session';

const documentsOf = async <T>({ app }: OperatorSession, collection: string, tenantId?: string) => {
  const { set } = await app.live.look();
  const documents: T[] = [];
  for await (const { text } of rowsOf(set, collection, tenantId)) documents.push(JSON.parse(text) as T);
  return documents;
};

export const allTenants = (session: OperatorSession): Promise<readonly TenantDocument[]> =>
  documentsOf(session, 'tenants');

/** The tenant in the read models, deleted or not. */
export const knownTenant = async ({ app }: OperatorSession, tenantId: string): Promise<TenantDocument> => {
  const tenant = await findTenant((await app.live.look()).set, tenantId);
  if (tenant === undefined) throw fault('tenant_not_found', `There is no tenant ${tenantId}.`);
  return tenant;
};

export const applicationsOf = (session: OperatorSession, tenantId: string) =>
  documentsOf<StoredApplication>(session, 'applications', tenantId);

export const knownApplication = async (session: OperatorSession, tenantId: string, id: string) => {
  await knownTenant(session, tenantId);
  const application = await findApplication((await session.app.live.look()).set, tenantId, id);
  if (application === undefined)
    throw fault('application_not_found', `Tenant ${tenantId} has no Application ${id}.`);
  return application;
};

/** A key whose owner is deleted cannot be used either. */
const keyStatus = (key: StoredKey, isTenantDeleted: boolean, isApplicationDeleted: boolean): string => {
  if (key.revoked_at !== undefined) return 'revoked';
  if (isExpired(key.expires_at, isoNow())) return 'expired';
  if (isApplicationDeleted) return 'application_deleted';
  return isTenantDeleted ? 'tenant_deleted' : 'active';
};

/** All keys of a tenant, without the keys themselves. */
export const keyViewsOf = async (session: OperatorSession, tenantId: string) => {
  const isTenantDeleted = (await knownTenant(session, tenantId)).deleted_at !== undefined;
  const applications = await applicationsOf(session, tenantId);
  const live = new Set(applications.flatMap(({ id, deleted_at }) => (deleted_at === undefined ? id : [])));
  const uses = await documentsOf<LastUse>(session, 'key_uses', tenantId);
  const lastUses = new Map(uses.map(({ key_id, last_used_at }) => [key_id, last_used_at]));
  const keys = await documentsOf<StoredKey>(session, 'keys', tenantId);
  return keys.map((key) => ({
    key_id: key.id,
    application_id: key.application_id,
    name: key.name ?? null,
    status: keyStatus(key, isTenantDeleted, !live.has(key.application_id)),
    created_at: key.created_at,
    expires_at: key.expires_at ?? null,
    revoked_at: key.revoked_at ?? null,
    last_used_at: lastUses.get(key.id) ?? null,
  }));
};

export type KeyView = Awaited<ReturnType<typeof keyViewsOf>>[number];
