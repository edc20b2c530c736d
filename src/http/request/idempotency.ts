import { hash } from 'node:crypto';
import type { Idempotency } from '../../domain/events';
import { headerOf, type ApiContext } from '../context';
import { looksLikeKey } from '../../domain/key-like';
import type { HeaderNames } from '../../configuration';
import { invalid } from './validation';

const STANDARD = 'Idempotency-Key';
const VISIBLE_ASCII = /^[\x21-\x7e]{1,255}$/;

/** From our header or the standard one, as sent. */
export const sentIdempotency = (
  ctx: ApiContext,
  headers: HeaderNames,
): Omit<Idempotency, 'hash'> | undefined => {
  const key = headerOf(ctx, headers.idempotencyKey) ?? headerOf(ctx, STANDARD);
  return key === undefined ? undefined : { key, scope: `${ctx.method} ${ctx.state.path}` };
};

/** Validated. If both headers are sent, they must be equal. */
export const idempotencyOf = (
  ctx: ApiContext,
  headers: HeaderNames,
  rawBody: string,
): Idempotency | undefined => {
  const sent = sentIdempotency(ctx, headers);
  if (sent === undefined) return undefined;
  const { key } = sent;
  const name = headerOf(ctx, headers.idempotencyKey) === undefined ? STANDARD : headers.idempotencyKey;
  if (key !== (headerOf(ctx, STANDARD) ?? key)) throw invalid({ [name]: [`differs from ${STANDARD}`] });
  // It is stored with the event, which must not contain a secret.
  if (looksLikeKey(key)) throw invalid({ [name]: ['must not be an API key'] });
  if (!VISIBLE_ASCII.test(key)) throw invalid({ [name]: ['must be 1 to 255 visible ASCII characters'] });
  return { ...sent, hash: hash('sha256', rawBody) };
};
