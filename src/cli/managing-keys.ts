import { isoNow } from '../clock';
import { hasManager } from '../domain/grants';
import type { Decide, Tenant } from '../domain/tenant';
import type { OperatorSession } from './operator-session';
import { notice } from './output';

const isManaged = (tenant: Tenant): boolean => tenant.status === 'active' && hasManager(tenant, isoNow());

/**
 * Writes what may take away the last key that can manage Applications, and says so. Over HTTP it would be refused unless
 * it is forced; the operator can always make another key.
 */
export const writeAndWarn = async (
  session: OperatorSession,
  tenantId: string,
  decide: Decide,
  actor: string | undefined,
): Promise<Tenant> => {
  const wasManaged = isManaged(await session.stateOf(tenantId));
  const tenant = await session.write(tenantId, decide, actor);
  if (wasManaged && tenant.status === 'active' && !isManaged(tenant))
    notice(
      `No key of tenant ${tenantId} can manage its Applications over HTTP any more. If one should, give a management Application application:update, and a key.`,
    );
  return tenant;
};
