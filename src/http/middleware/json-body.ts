import bodyParser from 'koa-bodyparser';
import { fault } from '../../fault';
import { rawBodyOf, type ApiContext, type ApiMiddleware } from '../context';
import { invalid } from '../validation';
import { setRequestTime } from './start-request';

/** What `koa-bodyparser` and the libraries below it throw. */
interface ParserError extends Error {
  readonly status?: number;
}

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

const tooLarge = () => fault('body_too_large', `The body is larger than ${MAX_BODY_BYTES} bytes.`);

const faultOf = (error: ParserError): Error => {
  if (error.status === 413) return tooLarge();
  if (error.status === 415) return unsupported();
  if (error.message.includes('forbidden prototype')) return invalid({ body: ['must not contain __proto__'] });
  if (error instanceof SyntaxError || error.status === 400) return invalid({ body: ['must be valid JSON'] });
  return invalid({ body: ['cannot be read'] });
};

const parse = bodyParser({
  enableTypes: ['json'],
  jsonLimit: `${MAX_BODY_BYTES}b`,
  strict: false,
  onerror: (error, ctx) => {
    // Drain what an aborted decompression left unread: it would block the connection.
    ctx.req.unpipe();
    ctx.req.resume();
    setRequestTime(ctx);
    throw faultOf(error);
  },
}) as unknown as ApiMiddleware;

/** Regardless of Content-Type: some client libraries set it without sending a body. */
const hasNoBody = ({ req: { headers } }: ApiContext): boolean =>
  headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;

/** Reads and parses the JSON body; `__proto__` anywhere in it is refused by the parser. */
export const readJsonBody = async (ctx: ApiContext, isOptional = false): Promise<void> => {
  if (isOptional && hasNoBody(ctx)) return;
  mustBeJson(ctx);
  const { headers } = ctx.req;
  // Before reading any of it. The parser would not: it overflows on lengths above 2^31.
  if (Number(headers['content-length'] ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  // Content codings are case-insensitive, but the parser only knows them in lower case.
  const coding = headers['content-encoding'];
  if (coding !== undefined) headers['content-encoding'] = coding.toLowerCase();
  await parse(ctx, async () => undefined);
  setRequestTime(ctx);
  const rawBody = rawBodyOf(ctx);
  if (rawBody.trim() === '' && !isOptional) throw invalid({ body: ['is required'] });
  if (rawBody.includes(REPLACEMENT)) throw invalid({ body: ['must be valid UTF-8'] });
};
