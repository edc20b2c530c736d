import type { AccessFault } from '../../domain/access';
import type { KnownKey } from '../../domain/authority';
import { codeOf } from '../../fault';
import type { ApiContext, ApiParts } from '../api-context';

/** What is refused to a known key goes on its tenant's record. The answer neither waits for that nor depends on it. */
export const noteRefusedAccess = (ctx: ApiContext, error: unknown, { access }: ApiParts): void => {
  const { tenantId, key, at, clientAddress: address } = ctx.state;
  if (tenantId === undefined) return;
  const more = (error as { more?: Readonly<Record<string, unknown>> }).more ?? {};
  const common = { tenantId, address, at };
  if (codeOf(error) === 'permission_missing' && key !== undefined) {
    const { keyId, application } = key;
    const permission = String(more['required_permission']);
    access.refused({
      ...common,
      keyId,
      applicationId: application.id,
      fault: 'permission_missing',
      permission,
    });
  } else if (codeOf(error) === 'key_refused' && more['of'] !== undefined) {
    const of = more['of'] as KnownKey;
    access.refused({ ...common, ...of, fault: more['reason'] as AccessFault });
  }
};
