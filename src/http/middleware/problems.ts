import { masked } from '../../domain/key-like';
import { codeOf, messageOf, moreOf } from '../../fault';
import { httpProblems, isHttpProblemCode, type HttpProblemCode, type Problem } from '../../problems';
import { etagOf } from '../conditions';
import type { ApiContext, ApiDependencies, ApiMiddleware, ApiSettings } from '../context';

export const PROBLEM_TYPE = 'application/problem+json';

/** What is the same in the body of every error with this code (RFC 9457). */
export const problemOf = (code: HttpProblemCode, publicUrl: string) => {
  const { status, title, meaning } = httpProblems[code];
  return { type: `${publicUrl}/problems/${code}`, title, status, detail: meaning, code };
};

/** These do not resolve by themselves, only through an operator or another request. */
const PERMANENT: ReadonlySet<HttpProblemCode> = new Set([
  'tenant_unreadable',
  'application_type_fixed',
  'quota_exceeded',
]);

const headersOf = (code: HttpProblemCode, error: unknown): Record<string, string> => {
  const { status } = httpProblems[code];
  const { tag, allow, retryAfter } = moreOf(error);
  const isTransient = (status === 503 || status === 409) && !PERMANENT.has(code);
  return {
    'Cache-Control': 'no-store',
    ...(status === 401 ? { 'WWW-Authenticate': 'ApiKey realm="tenant-ledger"' } : {}),
    ...(isTransient ? { 'Retry-After': '1' } : {}),
    ...(typeof retryAfter === 'number' ? { 'Retry-After': String(retryAfter) } : {}),
    ...(typeof tag === 'string' ? { ETag: etagOf(tag) } : {}),
    ...(typeof allow === 'string' ? { Allow: allow } : {}),
  };
};

/** The members that only this problem has, without internal ones like `reason` and `tag`. */
const ownMembers = (code: HttpProblemCode, error: unknown): Readonly<Record<string, unknown>> => {
  const { members = [] }: Problem = httpProblems[code];
  return Object.fromEntries(members.map((name) => [name, moreOf(error)[name]]));
};

const noteProblem = ({ state }: ApiContext, code: HttpProblemCode, error: unknown): void => {
  const { reason } = moreOf(error);
  state.problem = code;
  if (typeof reason === 'string') state.reason = reason;
  else if (httpProblems[code].status === 503) state.reason = messageOf(error);
  if (code === 'internal_error') state.error = error;
};

/** The details of server errors may reveal internals; all others were written for the caller. */
const detailOf = (code: HttpProblemCode, error: unknown, { headers }: ApiSettings): object => {
  const { status } = httpProblems[code];
  if (status >= 500) return {};
  // The same for every reason: it tells a stranger nothing, but an honest client what to send.
  const refused = `Send a valid API key in the header ${headers.apiKey}: it is missing, malformed, unknown, expired or revoked, or its tenant is deleted.`;
  return { detail: code === 'key_refused' ? refused : messageOf(error) };
};

const respondWithProblem = (ctx: ApiContext, error: unknown, settings: ApiSettings): void => {
  const thrown = codeOf(error);
  const code = thrown !== undefined && isHttpProblemCode(thrown) ? thrown : 'internal_error';
  noteProblem(ctx, code, error);
  ctx.status = httpProblems[code].status;
  ctx.set(headersOf(code, error));
  const body = {
    ...problemOf(code, settings.publicUrl),
    ...detailOf(code, error, settings),
    instance: ctx.path,
    trace_id: ctx.state.traceId,
    ...ownMembers(code, error),
  };
  // It quotes parts of the request, such as its path, and a key may have been sent there.
  ctx.body = masked(JSON.stringify(body));
  ctx.type = PROBLEM_TYPE;
};

/** Turns whatever is thrown below into a problem response. */
export const catchProblems =
  ({ settings }: Pick<ApiDependencies, 'settings'>): ApiMiddleware =>
  async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      respondWithProblem(ctx, error, settings);
    }
  };
