import { findApplication, type ApplicationDocument, type KeyDocument } from '../../projections/applications';
import type { LastUse } from '../../projections/key-days';
import { findTenant, type TenantDocument } from '../../projections/tenants';
import type { App } from '../app/app';
import { isoNow } from '../async/clock';
import { isExpired } from '../domain/authority';
import { fault } from '../fault';
import { rowsOf } from '../projecting/scanning';
import type { ReadModelSet } from '../read-models/read-models';
import type { OperatorSession } from './session';

interface WithApp {
  readonly app: Pick<App, 'live'>;
}

/** The documents of a collection, of one tenant or all. */
async function* documentsOf<T>(set: ReadModelSet, collection: string, tenantId?: string): AsyncGenerator<T> {
  for await (const { text } of rowsOf(set, collection, tenantId)) yield JSON.parse(text) as T;
}

const collected = async <T>(documents: AsyncIterable<T>): Promise<readonly T[]> => {
  const all: T[] = [];
  for await (const document of documents) all.push(document);
  return all;
};

export async function* allTenants({ app }: WithApp): AsyncGenerator<TenantDocument> {
  yield* documentsOf<TenantDocument>((await app.live.read()).set, 'tenants');
}

/** The tenant in the read models, deleted or not. */
export const knownTenant = async ({ app }: WithApp, tenantId: string): Promise<TenantDocument> => {
  const tenant = await findTenant((await app.live.read()).set, tenantId);
  if (tenant === undefined) throw fault('tenant_not_found', `There is no tenant ${tenantId}.`);
  return tenant;
};

export const applicationsOf = async (
  { app }: WithApp,
  tenantId: string,
): Promise<readonly ApplicationDocument[]> =>
  collected(documentsOf((await app.live.read()).set, 'applications', tenantId));

/** The Application in the read models, deleted or not. */
export const knownApplication = async (
  session: WithApp,
  tenantId: string,
  id: string,
): Promise<ApplicationDocument> => {
  await knownTenant(session, tenantId);
  const { set } = await session.app.live.read();
  const application = await findApplication(set, tenantId, id);
  if (application === undefined)
    throw fault('application_not_found', `Tenant ${tenantId} has no Application ${id}.`);
  return application;
};

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
  const { set } = await session.app.live.read();
  const lastUses = new Map<string, string>();
  for await (const { key_id, last_used_at } of documentsOf<LastUse>(set, 'key_uses', tenantId))
    lastUses.set(key_id, last_used_at);
  const keys = await collected<KeyDocument>(documentsOf(set, 'keys', tenantId));
  return keys.map((key) => {
    const isApplicationDeleted = deleted.has(key.application_id);
    return viewOf(key, { isTenantDeleted, isApplicationDeleted }, lastUses.get(key.id));
  });
};
