import type { RequestWithKey } from '../../key-uses/key-uses';
import type { ApiDependencies, ApiState } from '../api-context';

/** Counts what a request with an accepted key was used for. */
export const countUse = (
  { identity, clientAddress }: ApiState,
  at: string,
  what: RequestWithKey['what'],
  { keyUses, recordsClients }: ApiDependencies,
): void => {
  if (identity === undefined) return;
  const { tenantId, keyId, application } = identity;
  const address = recordsClients ? clientAddress : undefined;
  keyUses.used({ tenantId, applicationId: application.id, keyId, at, address, what });
};
