import bodyParser from 'koa-bodyparser';
import { hash } from 'node:crypto';
import { isoNow, monotonicMs } from '../async/clock';
import type { Idempotency } from '../domain/events';
import { looksLikeKey } from '../domain/texts';
import { fault } from '../fault';
import { TIMES } from '../times';
import type { HeaderNames, ApiContext, ApiMiddleware } from './context';
import { invalid } from './validation';

/** What a request carries besides its path and query: its time, entity tags, idempotency key and body. */

/** Sets the time that the request's event will carry, and the deadline for the response. */
export const setRequestTime = ({ state }: ApiContext): void => {
  state.at = isoNow();
  state.deadline = monotonicMs() + TIMES.respondMs;
};

/** The value of a header. Node joins repeated ones with a comma, which no valid value of ours contains. */
export const headerOf = (ctx: ApiContext, name: string): string | undefined =>
  ctx.req.headers[name.toLowerCase()] as string | undefined; // a list only for `Set-Cookie`

/** The body as it was sent. */
const rawBodyOf = (ctx: ApiContext): string => (ctx.request.rawBody as string | undefined) ?? '';

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

/** What a client sends that has read no `ETag`. */
const NO_TAG = /^(?:null|None|undefined)$/;

/** `If-Match` compares strongly: a weak tag never matches. */
const matches = (header: string): ((tag: string) => boolean) => {
  if (header.trim() === '*') return () => true;
  const tags = tagsOf(header);
  if (tags === undefined)
    throw invalid({
      'If-Match': [
        NO_TAG.test(header)
          ? `must be an entity tag, not the text ${header}: the response that was read had no ETag, as while the Tenant is parked`
          : 'must be "*" or a list of quoted entity tags, for example "3"',
      ],
    });
  return (tag) => tags.includes(etagOf(tag));
};

/** Whether `If-None-Match` has this tag. It compares weakly, and a malformed header is ignored. */
export const isUnchanged = (header: string, tag: string | undefined): boolean => {
  if (tag === undefined) return false;
  if (header.trim() === '*') return true;
  return (tagsOf(header) ?? []).some((sent) => sent.replace(/^W\//, '') === etagOf(tag));
};

/** Whether a write may change a resource with this tag, which `ledger.ts` asks at the revision of the append. Undefined: it may. */
export const conditionOf = (ctx: ApiContext): ((tag: string) => boolean) | undefined => {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = ctx.req.headers;
  if (ifMatch === undefined && ifNoneMatch === undefined) return undefined;
  const isMatch = ifMatch === undefined ? () => true : matches(ifMatch);
  return (tag) => isMatch(tag) && (ifNoneMatch === undefined || !isUnchanged(ifNoneMatch, tag));
};

const STANDARD = 'Idempotency-Key';
const VISIBLE_ASCII = /^[\x21-\x7e]{1,255}$/;

/** From our header or the standard one, as sent. */
export const sentIdempotency = (ctx: ApiContext, { idempotencyKey }: HeaderNames) => {
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

/** What decoders substitute for invalid UTF-8. Clients have no reason to send the character itself. */
const REPLACEMENT = '\ufffd';

const unsupported = () =>
  fault('unsupported_media_type', 'The body must be JSON in UTF-8, with Content-Type: application/json.');

/** Types like `application/merge-patch+json` are JSON too, but imply semantics that this service does not implement. */
const mustBeJson = (ctx: ApiContext): void => {
  const type = ctx.request.is('application/json');
  if (type === null) throw invalid({ body: ['is required'] });
  const charset = /charset=\s*"?([^\s;"]+)/i.exec(ctx.req.headers['content-type'] ?? '')?.[1];
  if (type === false || (charset !== undefined && !/^utf-?8$/i.test(charset))) throw unsupported();
};

const MAX_BODY_BYTES = 65_536;
const MAX_LINES_BYTES = 1_048_576;

const tooLarge = (most: number) => fault('body_too_large', `The body is larger than ${most} bytes.`);

const faultOf = (error: Error & { readonly status?: number }, most: number): Error => {
  if (error.status === 413) return tooLarge(most);
  if (error.status === 415) return unsupported();
  if (error.message.includes('forbidden prototype')) return invalid({ body: ['must not contain __proto__'] });
  if (error instanceof SyntaxError || error.status === 400) return invalid({ body: ['must be valid JSON'] });
  return invalid({ body: ['cannot be read'] });
};

const LINES = 'application/x-ndjson';

const parser = (most: number, options: bodyParser.Options): ApiMiddleware =>
  bodyParser({
    ...options,
    jsonLimit: `${most}b`,
    textLimit: `${most}b`,
    onerror: (error, ctx) => {
      // Drain what an aborted decompression left unread: it would block the connection.
      ctx.req.unpipe();
      ctx.req.resume();
      setRequestTime(ctx);
      throw faultOf(error, most);
    },
  }) as ApiMiddleware;

const parse = parser(MAX_BODY_BYTES, { enableTypes: ['json'], strict: false });

/** Without an encoding, the body is the bytes as they were sent. */
const readBytes = parser(MAX_LINES_BYTES, {
  enableTypes: ['text'],
  extendTypes: { text: [LINES] },
  encoding: false,
} as bodyParser.Options);

/** Regardless of Content-Type: some client libraries set it without sending a body. */
const hasNoBody = ({ req: { headers } }: ApiContext): boolean =>
  headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;

/** Before reading any of it. The parser would not check: it overflows on lengths above 2^31. */
const prepareToRead = ({ req: { headers } }: ApiContext, most: number): void => {
  if (Number(headers['content-length'] ?? 0) > most) throw tooLarge(most);
  // Content codings are case-insensitive, but the parser only knows them in lower case.
  const coding = headers['content-encoding'];
  if (coding !== undefined) headers['content-encoding'] = coding.toLowerCase();
};

/** Reads and parses the JSON body; `__proto__` anywhere in it is refused by the parser. */
export const readJsonBody = async (ctx: ApiContext, isOptional = false): Promise<void> => {
  if (isOptional && hasNoBody(ctx)) return;
  mustBeJson(ctx);
  prepareToRead(ctx, MAX_BODY_BYTES);
  await parse(ctx, async () => undefined);
  setRequestTime(ctx);
  const rawBody = rawBodyOf(ctx);
  if (rawBody.trim() === '' && !isOptional) throw invalid({ body: ['is required'] });
  if (rawBody.includes(REPLACEMENT)) throw invalid({ body: ['must be valid UTF-8'] });
};

/** The same, or lines as the bytes that were sent. */
export const readLinesBody = async (ctx: ApiContext): Promise<void> => {
  const type = ctx.request.is([LINES, 'application/json']);
  if (type === false)
    throw fault(
      'unsupported_media_type',
      `Send lines as ${LINES}, or one fact or an array as application/json, in UTF-8.`,
    );
  if (type !== LINES) return readJsonBody(ctx);
  prepareToRead(ctx, MAX_LINES_BYTES);
  await readBytes(ctx, async () => undefined);
  setRequestTime(ctx);
};
