import { hash, randomInt, randomUUID } from 'node:crypto';
import { threadMs } from '../async/clock';
import type { NewKey } from '../domain/application-keys';
import { keyStatusIn, requireValid, type ValidKey } from '../domain/authority';
import type { Idempotency } from '../domain/events';
import { KEY_ALPHABET, hasChecksum, withChecksum } from '../domain/texts';
import type { LedgerLog } from '../event-log/streams';
import { earlierRequest, type EarlierRequest, type Fold } from './fold';
import type { Folds, KnownTenant } from './folds';

/**
 * A key contains its tenant's id, so a write can check it with that tenant's stream alone; the checksum rejects typos
 * without a lookup. Only the SHA-256 of a key is ever stored.
 */
const MAX_UUID = 2n ** 128n - 1n;

/** How many base62 digits a number can represent exactly. */
const SHORT_DIGITS = 8;
const SHORT_RANGE = 62n ** BigInt(SHORT_DIGITS);

const DIGITS = Uint8Array.from({ length: 128 }, (_, code) => KEY_ALPHABET.indexOf(String.fromCharCode(code)));

const shortFromBase62 = (text: string): number => {
  let value = 0;
  for (let at = 0; at < text.length; at += 1) value = value * 62 + (DIGITS[text.charCodeAt(at)] ?? 0);
  return value;
};

const toBase62 = (value: bigint, width: number): string => {
  let text = '';
  for (let rest = value; text.length < width; rest /= 62n)
    text = `${KEY_ALPHABET[Number(rest % 62n)]}${text}`;
  return text;
};

/** In chunks that fit a number, because every request with a key pays for this. */
const fromBase62 = (text: string): bigint => {
  let value = 0n;
  for (let at = text.length % SHORT_DIGITS; at <= text.length; at += SHORT_DIGITS)
    value = value * SHORT_RANGE + BigInt(shortFromBase62(text.slice(Math.max(0, at - SHORT_DIGITS), at)));
  return value;
};

const randomText = (): string => Array.from({ length: 27 }, () => KEY_ALPHABET[randomInt(62)]).join('');

export const makeKey = (tenantId: string): string => {
  const tenant = toBase62(BigInt(`0x${tenantId.replaceAll('-', '')}`), 22);
  return withChecksum(`key_${tenant}${randomText()}`);
};

export const makeServiceKey = (): string => withChecksum(`svc_${randomText()}`);

/** Whether it has the form of a service's key. */
export const isServiceKey = (key: string): boolean =>
  key.length === 37 && /^svc_[0-9A-Za-z]{33}$/.test(key) && hasChecksum(key);

const KEY = /^key_([0-9A-Za-z]{22})[0-9A-Za-z]{33}$/;

/** The id of the tenant in a key, or undefined if the key is malformed. */
export const tenantOfKey = (key: string): string | undefined => {
  const match = KEY.exec(key);
  if (match === null || !hasChecksum(key)) return undefined;
  const id = fromBase62(match[1] as string);
  if (id > MAX_UUID) return undefined;
  const hex = id.toString(16).padStart(32, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
};

const IN_TEXT = {
  tenant: /key_[0-9A-Za-z]{55}(?![0-9A-Za-z])/g,
  service: /svc_[0-9A-Za-z]{33}(?![0-9A-Za-z])/g,
};

/** The complete keys of a kind in a text, such as the report of a scanner; each once. */
export const keysIn = (text: string, kind: keyof typeof IN_TEXT): readonly string[] => [
  ...new Set(Array.from(text.matchAll(IN_TEXT[kind]), ([key]) => key).filter(hasChecksum)),
];

export const digestOf = (key: string): string => hash('sha256', key);

const withId = <More extends object>(key: string, more: More) => {
  return { key, input: { keyId: randomUUID(), digest: digestOf(key), ...more } };
};

export const newKey = (tenantId: string, more: Pick<NewKey, 'expiresAt' | 'name'> = {}) =>
  withId(makeKey(tenantId), more);

export const newServiceKey = (expiresAt?: string) => withId(makeServiceKey(), { expiresAt });

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
