import { threadMs } from '../async/clock';
import {
  isFinal,
  keyStatusIn,
  requireValid,
  statusOf,
  type KeyRecord,
  type KeyStatus,
} from '../domain/authority';
import type { LedgerLog } from '../event-log/ledger-log';
import type { Fold } from './fold';
import { earlierRequest, type EarlierRequest } from './earlier-request';
import type { Folds, KnownTenant } from './folds';
import type { KeyHolder } from '../domain/keys';
import type { PresentedKey } from './request';

/** Who a request comes from, and what they may do. */
export interface Identity {
  readonly tenantId: string;
  readonly keyId: string;
  readonly application: KeyHolder;
  /** When the key expires, if it does. */
  readonly expiresAt?: string;
}

/** What the read model says about keys. */
export interface KeyRecords {
  /**
   * What it says about a key, if it is proven to show everything that was in the log at this time (on the clock of this
   * thread) or later. Undefined: that cannot be proven, or the tenant is parked. While the log does not answer:
   * `log_unavailable`, or for reads what is known, for a while.
   */
  find(key: PresentedKey, since: number): Promise<KeyRecord | undefined>;
}

type Holder = Omit<Identity, 'tenantId'>;

/**
 * The holder of a key, or `key_refused`. Keys of a deleted tenant are refused with one exception: repeating the deletion
 * itself with the same key. Its event is the last one of the stream.
 */
export const holderOf = (
  { fold }: KnownTenant,
  { digest, at }: Pick<PresentedKey, 'digest' | 'at'>,
  earlier: Pick<EarlierRequest, 'keyId' | 'revision'> | undefined,
): Holder => {
  const found = keyStatusIn(fold.tenant, digest, at);
  const repeatsDeletion =
    found.status === 'tenant_deleted' && earlier?.keyId === found.keyId && earlier.revision === fold.revision;
  return repeatsDeletion ? found : requireValid(found);
};

/**
 * The holder of this key, or `key_refused`. A key that is accepted was valid at most this long ago; a refusal is as of
 * this call. While the log does not answer, both are as of its last answer for reads.
 */
export type Identify = (key: PresentedKey, maxAgeMs: number) => Promise<Identity>;

export const identifying = (ledgerLog: LedgerLog, folds: Folds, records: KeyRecords): Identify => {
  const statusIn = ({ tenant }: Fold, { digest, at }: PresentedKey): KeyStatus =>
    keyStatusIn(tenant, digest, at);

  /** With a proof, the read model decides; without one, the fold. */
  const statusAt = async (key: PresentedKey, since: number): Promise<KeyStatus> => {
    const { tenantId, at, deadline } = key;
    const isFolded = folds.peek(tenantId, since) !== undefined;
    const record = isFolded ? undefined : await records.find(key, since);
    if (record !== undefined) return statusOf(record, at);
    return statusIn((await folds.asOf(tenantId, since, deadline)).fold, key);
  };

  const statusWithin = async (key: PresentedKey, maxAgeMs: number): Promise<KeyStatus> => {
    const cached = folds.peek(key.tenantId);
    const known = cached === undefined ? undefined : statusIn(cached, key);
    // No later event changes a final status.
    if (known !== undefined && isFinal(known)) return known;
    const found = await statusAt(key, threadMs() - maxAgeMs);
    return found.status === 'valid' || maxAgeMs === 0 ? found : statusAt(key, threadMs());
  };

  const repeatedDeletion = async (key: PresentedKey, { application }: Extract<KeyStatus, Holder>) => {
    const { tenantId, request } = key;
    const tenant = await folds.asOf(tenantId, threadMs(), key.deadline);
    const repeatable = { tenantId, applicationId: application.id, request };
    return holderOf(tenant, key, await earlierRequest(ledgerLog, tenant, repeatable));
  };

  return async (key, maxAgeMs) => {
    const found = await statusWithin(key, maxAgeMs);
    const isRepeat = found.status === 'tenant_deleted' && key.request !== undefined;
    return {
      tenantId: key.tenantId,
      ...(isRepeat ? await repeatedDeletion(key, found) : requireValid(found)),
    };
  };
};
