import { isoNow } from '../async/clock';
import { hasManager } from '../domain/grants';
import type { Decide, Tenant } from '../domain/tenant';
import type { OperatorSession } from './operator-session';
import { notice } from './output';

const isManaged = (tenant: Tenant): boolean => tenant.status === 'active' && hasManager(tenant, isoNow());

/**
 * For writes that may remove the last key that can manage Applications: warns if one did. Over HTTP that is refused
 * unless forced, but an operator can always create another key.
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
      session.io,
      `No key of tenant ${tenantId} can manage its Applications over HTTP any more. If one should, give a management Application application:update, and a key.`,
    );
  return tenant;
};
