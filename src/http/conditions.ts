import { hash } from 'node:crypto';
import type { HeaderNames } from '../configuration';
import type { Idempotency } from '../domain/events';
import { looksLikeKey } from '../domain/key-like';
import { headerOf, rawBodyOf, type ApiContext } from './context';
import { invalid } from './validation';

/** What a request says about when it may be carried out: entity tags and idempotency keys. */

export const etagOf = (tag: string): string => `"${tag}"`;

const TAG = /^(W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;

/** The entity tags in a list header; undefined: it is malformed. Our own tags contain no comma. */
const tagsOf = (header: string): readonly string[] | undefined => {
  const tags = header
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
  return tags.length > 0 && tags.every((tag) => TAG.test(tag)) ? tags : undefined;
};

/** `If-Match` compares strongly: a weak tag never matches. */
const matches = (header: string): ((tag: string) => boolean) => {
  if (header.trim() === '*') return () => true;
  const tags = tagsOf(header);
  if (tags === undefined)
    throw invalid({ 'If-Match': ['must be "*" or a list of quoted entity tags, for example "3"'] });
  return (tag) => tags.includes(etagOf(tag));
};

/** Whether `If-None-Match` has this tag. It compares weakly, and a malformed header is ignored. */
export const isUnchanged = (header: string, tag: string | undefined): boolean => {
  if (tag === undefined) return false;
  if (header.trim() === '*') return true;
  return (tagsOf(header) ?? []).some((sent) => sent.replace(/^W\//, '') === etagOf(tag));
};

/** Whether a write may change a resource with this tag. Undefined: under all conditions. */
export const conditionOf = (ctx: ApiContext): ((tag: string) => boolean) | undefined => {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = ctx.req.headers;
  if (ifMatch === undefined && ifNoneMatch === undefined) return undefined;
  const isMatch = ifMatch === undefined ? () => true : matches(ifMatch);
  return (tag) => isMatch(tag) && (ifNoneMatch === undefined || !isUnchanged(ifNoneMatch, tag));
};

const STANDARD = 'Idempotency-Key';
const VISIBLE_ASCII = /^[\x21-\x7e]{1,255}$/;

/** From our header or the standard one, as sent. */
export const sentIdempotency = (
  ctx: ApiContext,
  { idempotencyKey }: HeaderNames,
): Omit<Idempotency, 'hash'> | undefined => {
  const key = headerOf(ctx, idempotencyKey) ?? headerOf(ctx, STANDARD);
  return key === undefined ? undefined : { key, scope: `${ctx.method} ${ctx.state.path}` };
};

/** Validated. If both headers are sent, they must be equal. */
export const idempotencyOf = (ctx: ApiContext, headers: HeaderNames): Idempotency | undefined => {
  const sent = sentIdempotency(ctx, headers);
  if (sent === undefined) return undefined;
  const { key } = sent;
  const name = headerOf(ctx, headers.idempotencyKey) === undefined ? STANDARD : headers.idempotencyKey;
  if (key !== (headerOf(ctx, STANDARD) ?? key)) throw invalid({ [name]: [`differs from ${STANDARD}`] });
  // It is stored with the event, which must not contain a secret.
  if (looksLikeKey(key)) throw invalid({ [name]: ['must not be an API key'] });
  if (!VISIBLE_ASCII.test(key)) throw invalid({ [name]: ['must be 1 to 255 visible ASCII characters'] });
  return { ...sent, hash: hash('sha256', rawBodyOf(ctx)) };
};
