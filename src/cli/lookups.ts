import { findApplication, type ApplicationDocument, type KeyDocument } from '../../projections/applications';
import { findTenant, type TenantDocument } from '../../projections/tenants';
import type { App } from '../app/app';
import { fault } from '../fault';
import { documentsOf } from '../read-models/scanning';

interface WithApp {
  readonly app: Pick<App, 'projecting'>;
}

const collected = async <T>(documents: AsyncIterable<T>): Promise<readonly T[]> => {
  const all: T[] = [];
  for await (const document of documents) all.push(document);
  return all;
};

export const allTenants = ({ app }: WithApp): AsyncIterable<TenantDocument> =>
  documentsOf<TenantDocument>(app.projecting.reader('tenants'), 'tenants');

/** The tenant in the read models, deleted or not. */
export const knownTenant = async ({ app }: WithApp, tenantId: string): Promise<TenantDocument> => {
  const tenant = await findTenant(app.projecting.reader('tenants'), tenantId);
  if (tenant === undefined) throw fault('tenant_not_found', `There is no tenant ${tenantId}.`);
  return tenant;
};

export const applicationsOf = ({ app }: WithApp, tenantId: string): Promise<readonly ApplicationDocument[]> =>
  collected(documentsOf(app.projecting.reader('applications'), 'applications', tenantId));

/** The Application in the read models, deleted or not. */
export const knownApplication = async (
  session: WithApp,
  tenantId: string,
  id: string,
): Promise<ApplicationDocument> => {
  await knownTenant(session, tenantId);
  const reader = session.app.projecting.reader('applications');
  const application = await findApplication(reader, tenantId, id);
  if (application === undefined)
    throw fault('application_not_found', `Tenant ${tenantId} has no Application ${id}.`);
  return application;
};

export const keysOf = ({ app }: WithApp, tenantId: string): Promise<readonly KeyDocument[]> =>
  collected(documentsOf(app.projecting.reader('applications'), 'keys', tenantId));
