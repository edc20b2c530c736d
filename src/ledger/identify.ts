import { threadMs } from '../async/clock';
import { keyStatusIn, requireValid, type ValidKey } from '../domain/authority';
import type { Idempotency } from '../domain/events';
import type { LedgerLog } from '../event-log/streams';
import type { Fold } from './fold';
import type { Folds, KnownTenant } from './folds';
import { earlierRequest, type EarlierRequest } from './idempotent-requests';

/** An API key as a request presents it, before anything else is known about the caller. */
export interface PresentedKey {
  /** ISO 8601. The key must not have expired by then. */
  readonly at: string;
  /** When the response is due, on the monotonic clock. */
  readonly deadline: number;
  /** The tenant in the key. */
  readonly tenantId: string;
  readonly digest: string;
  /** Without the log, reads continue for a while from what was known last. Writes are `log_unavailable`. */
  readonly isWrite?: boolean;
  /** The idempotent request that it came with. A repeated deletion is answered although the tenant is deleted. */
  readonly request?: Pick<Idempotency, 'scope' | 'key'> | undefined;
}

/** Who a request comes from, and what they may do. */
export interface Identity extends ValidKey {
  readonly tenantId: string;
}

/**
 * The holder of a key, or `key_refused`. Keys of a deleted tenant are refused with one exception: repeating the deletion
 * itself with the same key. Its event is the last one of the stream.
 */
export const holderOf = (
  { tenant, revision }: Fold,
  { digest, at }: Pick<PresentedKey, 'digest' | 'at'>,
  earlier: Pick<EarlierRequest, 'keyId' | 'revision'> | undefined,
): ValidKey => {
  const found = keyStatusIn(tenant, digest, at);
  const repeatsDeletion =
    found.status === 'tenant_deleted' && earlier?.keyId === found.keyId && earlier.revision === revision;
  return repeatsDeletion ? found : requireValid(found);
};

/**
 * The holder of this key, or `key_refused`. A key that is accepted was valid at most this long ago; for reads, while the
 * log does not answer, when the tenant was last looked up. A refusal is as of this call.
 */
export type Identify = (key: PresentedKey, maxAgeMs: number) => Promise<Identity>;

export const identifying = (ledgerLog: LedgerLog, folds: Folds): Identify => {
  const earlierOf = async (known: KnownTenant, { tenantId, digest, at, request }: PresentedKey) => {
    const found = keyStatusIn(known.tenant, digest, at);
    if (found.status !== 'tenant_deleted') return undefined;
    const repeatable = { tenantId, applicationId: found.application.id, request };
    const revision = known.requests.find(found.application.id, request);
    return revision === undefined ? undefined : earlierRequest(ledgerLog, repeatable, revision);
  };

  return async (key, maxAgeMs) => {
    const { tenantId, digest, at, deadline, isWrite = false } = key;
    if (maxAgeMs > 0) {
      const find = isWrite ? folds.asOf : folds.forReading;
      const { tenant } = await find(tenantId, threadMs() - maxAgeMs, deadline);
      const found = keyStatusIn(tenant, digest, at);
      if (found.status === 'valid') return { tenantId, ...requireValid(found) };
    }
    const known = await folds.asOf(tenantId, threadMs(), deadline);
    return { tenantId, ...holderOf(known, key, await earlierOf(known, key)) };
  };
};
