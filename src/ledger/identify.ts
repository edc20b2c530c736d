import { isFinal, keyStanding, requireValid, type KeyHolder, type KeyStanding } from '../domain/authority';
import type { Idempotency } from '../domain/events';
import { codeOf } from '../fault';
import { untilUnchanged, type Folds, type KnownTenant } from './folds';
import { replyKey, type Reply } from './replies';

/** An API key as a request presents it. */
export interface PresentedKey {
  /** The tenant that it names. */
  readonly tenantId: string;
  readonly digest: string;
  /** ISO 8601: it must not have expired by then. */
  readonly at: string;
  /** On the monotonic clock. */
  readonly deadline: number;
  /** The idempotent request that it came with: one that repeats a deletion is answered, although its tenant is deleted. */
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

/** What a key stands for, without folding its tenant. Fails with `read_models_unavailable` if that cannot be said. */
export interface KeyCheck {
  /**
   * A good key was good within the last 400 ms. A refusal counts as of this call; while the log is out of reach, as of
   * when it last answered.
   */
  forReading(key: PresentedKey): Promise<KeyStanding>;
  /** The same; but while the log is out of reach nothing is refused: `log_unavailable`. */
  forWriting(key: PresentedKey): Promise<KeyStanding>;
  /** As of this call, good or not; `log_unavailable` while the log is out of reach. */
  atHead(key: PresentedKey): Promise<KeyStanding>;
}

type Holder = Omit<Identity, 'tenantId'>;

/**
 * Who holds a key, or `key_refused`. The one exception to "no key of a deleted tenant" is the deletion itself, repeated
 * with the same key: it is the last event of its stream.
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
   * Who presents this key, or `key_refused`. Reads: as `KeyCheck.forReading` says. Writes: what this process knows of the
   * tenant is enough for a good key, since `execute` decides finally; a refusal counts as of this call.
   */
  identify(key: PresentedKey, purpose: 'read' | 'write'): Promise<Identity>;
  /** The same, as of this call: to be asked before a write is refused for any other reason than by `execute`. */
  identifyAtHead(key: PresentedKey): Promise<Identity>;
}

export const identifying = (folds: Folds, keys: KeyCheck): Identifying => {
  /** As far as this process has read the tenant's stream. */
  const known = ({ tenantId, digest, at }: PresentedKey): KeyStanding | undefined => {
    const fold = folds.peek(tenantId);
    return fold === undefined ? undefined : keyStanding(fold.tenant, digest, at);
  };

  const folded = async ({ tenantId, digest, at, deadline }: PresentedKey): Promise<KeyStanding> =>
    keyStanding((await folds.atHead(tenantId, deadline)).fold.tenant, digest, at);

  /** A write needs no read model: without one its tenant is folded. */
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
    // What nothing can change any more counts at once, whoever asks.
    identify: async (key, purpose) => {
      const standing = known(key);
      const isFinished = standing !== undefined && isFinal(standing);
      if (purpose === 'read') {
        const { tenantId } = key;
        return { tenantId, ...requireValid(isFinished ? standing : await keys.forReading(key)) };
      }
      const isEnough = isFinished || standing?.status === 'good';
      return writer(key, isEnough ? standing : await orFolded(key, keys.forWriting));
    },
    identifyAtHead: async (key) => {
      const standing = known(key);
      if (standing?.status === 'good') return writer(key, await folded(key));
      const isFinished = standing !== undefined && isFinal(standing);
      return writer(key, isFinished ? standing : await orFolded(key, keys.atHead));
    },
  };
};
