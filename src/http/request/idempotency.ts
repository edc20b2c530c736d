import { createHash } from 'node:crypto';
import type { Idempotency } from '../../domain/events';
import { headerOf, type ApiContext } from '../context';
import { looksLikeKey } from '../../domain/key-like';
import type { HeaderNames } from '../../configuration';
import { invalid } from './validation';

const STANDARD = 'Idempotency-Key';
const VISIBLE_ASCII = /^[\x21-\x7e]{1,255}$/;

/** As sent, not validated. */
export const sentIdempotencyKey = (ctx: ApiContext, headers: HeaderNames): string | undefined =>
  headerOf(ctx, headers.idempotencyKey) ?? headerOf(ctx, STANDARD);

/** From our header or the standard one. If both are sent, they must be equal. */
export const idempotencyOf = (
  ctx: ApiContext,
  headers: HeaderNames,
  rawBody: string,
): Idempotency | undefined => {
  const custom = headerOf(ctx, headers.idempotencyKey);
  const standard = headerOf(ctx, STANDARD);
  const key = custom ?? standard;
  if (key === undefined) return undefined;
  const name = custom === undefined ? STANDARD : headers.idempotencyKey;
  if (key !== (standard ?? key)) throw invalid({ [name]: [`differs from ${STANDARD}`] });
  // It is stored with the event, which must not contain a secret.
  if (looksLikeKey(key)) throw invalid({ [name]: ['must not be an API key'] });
  if (!VISIBLE_ASCII.test(key)) throw invalid({ [name]: ['must be 1 to 255 visible ASCII characters'] });
  const hash = createHash('sha256').update(rawBody).digest('hex');
  return { key, scope: `${ctx.method} ${ctx.state.path}`, hash };
};
