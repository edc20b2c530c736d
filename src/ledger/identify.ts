import { isFinal, keyStanding, requireValid, type KeyHolder, type KeyStanding } from '../domain/authority';
import type { Idempotency } from '../domain/events';
import { codeOf } from '../fault';
import { untilUnchanged, type Folds, type KnownTenant } from './folds';
import { replyKey, type Reply } from './replies';

/** An API key as a request presents it. */
export interface PresentedKey {
  /** The tenant in the key. */
  readonly tenantId: string;
  readonly digest: string;
  /** ISO 8601. The key must not have expired by then. */
  readonly at: string;
  /** On the monotonic clock. */
  readonly deadline: number;
  /** The idempotent request that it came with. A repeated deletion is answered although the tenant is deleted. */
  readonly request?: Pick<Idempotency, 'scope' | 'key'> | undefined;
}

/** Who a request comes from, and what they may do. */
export interface Identity {
  readonly tenantId: string;
  readonly keyId: string;
  readonly application: KeyHolder;
  /** When the key expires, if it does. */
  readonly expiresAt?: string;
}

/** Looks up the status of a key without folding its tenant. `read_models_unavailable` if that is impossible. */
export interface KeyCheck {
  /**
   * A good key was good within the last 400 ms. A refusal is as of this call or, while the log is out of reach, as of
   * its last answer.
   */
  forReading(key: PresentedKey): Promise<KeyStanding>;
  /** The same, except that while the log is out of reach a refusal becomes `log_unavailable`. */
  forWriting(key: PresentedKey): Promise<KeyStanding>;
  /** As of this call, good or not; `log_unavailable` while the log is out of reach. */
  atHead(key: PresentedKey): Promise<KeyStanding>;
}

type Holder = Omit<Identity, 'tenantId'>;

/**
 * The holder of a key, or `key_refused`. Keys of a deleted tenant are refused with one exception: repeating the deletion
 * itself with the same key. Its event is the last one of the stream.
 */
export const holderOf = (
  { fold }: KnownTenant,
  { digest, at }: Pick<PresentedKey, 'digest' | 'at'>,
  reply: Reply | undefined,
): Holder => {
  const standing = keyStanding(fold.tenant, digest, at);
  const repeatsDeletion =
    standing.status === 'tenant_deleted' &&
    reply?.keyId === standing.keyId &&
    reply.revision === fold.revision;
  return repeatsDeletion ? standing : requireValid(standing);
};

export interface Identifying {
  /**
   * The holder of this key, or `key_refused`. Reads: see `KeyCheck.forReading`. Writes: a stale fold may accept a key,
   * since `execute` has the final say; a refusal is as of this call.
   */
  identify(key: PresentedKey, purpose: 'read' | 'write'): Promise<Identity>;
  /** The same as of this call. Call it before refusing a write for any reason outside `execute`. */
  identifyAtHead(key: PresentedKey): Promise<Identity>;
}

export const identifying = (folds: Folds, keys: KeyCheck): Identifying => {
  /** According to the cached fold, if there is one. */
  const known = ({ tenantId, digest, at }: PresentedKey): KeyStanding | undefined => {
    const fold = folds.peek(tenantId);
    return fold === undefined ? undefined : keyStanding(fold.tenant, digest, at);
  };

  const folded = async ({ tenantId, digest, at, deadline }: PresentedKey): Promise<KeyStanding> =>
    keyStanding((await folds.atHead(tenantId, deadline)).fold.tenant, digest, at);

  /** Writes must work without read models, so fall back to folding the tenant. */
  const orFolded = async (key: PresentedKey, check: KeyCheck['atHead']): Promise<KeyStanding> => {
    try {
      return await check(key);
    } catch (error) {
      if (codeOf(error) !== 'read_models_unavailable') throw error;
      return folded(key);
    }
  };

  const writer = async (key: PresentedKey, standing: KeyStanding): Promise<Identity> => {
    const { tenantId, request } = key;
    if (standing.status !== 'tenant_deleted' || request === undefined)
      return { tenantId, ...requireValid(standing) };
    return untilUnchanged(async () => {
      const tenant = await folds.atHead(tenantId, key.deadline);
      const reply = tenant.replies.find(replyKey(standing.application.id, request));
      return { tenantId, ...holderOf(tenant, key, reply) };
    });
  };

  return {
    // A final status needs no further check.
    identify: async (key, purpose) => {
      const standing = known(key);
      const isSettled = standing !== undefined && isFinal(standing);
      if (purpose === 'read') {
        const { tenantId } = key;
        return { tenantId, ...requireValid(isSettled ? standing : await keys.forReading(key)) };
      }
      const isEnough = isSettled || standing?.status === 'good';
      return writer(key, isEnough ? standing : await orFolded(key, keys.forWriting));
    },
    identifyAtHead: async (key) => {
      const standing = known(key);
      if (standing?.status === 'good') return writer(key, await folded(key));
      const isSettled = standing !== undefined && isFinal(standing);
      return writer(key, isSettled ? standing : await orFolded(key, keys.atHead));
    },
  };
};
