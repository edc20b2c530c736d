import { masked } from '../../domain/key-like';
import { codeOf, messageOf, moreOf } from '../../fault';
import { httpProblems, isHttpProblemCode, type HttpProblemCode, type Problem } from '../../problems';
import type { ApiContext, Step } from '../context';
import type { ApiDependencies } from '../dependencies';
import { etagOf } from '../request/conditions';
import { PROBLEM_TYPE, problemBody, problemHeaders } from './problem-body';

/** The members that only this problem has, without internal ones like `reason` and `tag`. */
const ownMembers = (code: HttpProblemCode, error: unknown): Readonly<Record<string, unknown>> => {
  const { members = [] }: Problem = httpProblems[code];
  return Object.fromEntries(members.map((name) => [name, moreOf(error)[name]]));
};

const noteProblem = (ctx: ApiContext, code: HttpProblemCode, error: unknown): void => {
  const { reason } = moreOf(error);
  ctx.state.problem = code;
  if (typeof reason === 'string') ctx.state.reason = reason;
  else if (httpProblems[code].status === 503) ctx.state.reason = messageOf(error);
  if (code === 'internal_error') ctx.state.error = error;
};

const detailOf = (
  code: HttpProblemCode,
  error: unknown,
  { settings }: ApiDependencies,
): string | undefined => {
  // The same for every reason: it tells a stranger nothing, but an honest client what to send.
  if (code === 'key_refused')
    return `Send a valid API key in the header ${settings.headers.apiKey}: it is missing, malformed, unknown, expired or revoked, or its tenant is deleted.`;
  // The details of server errors may reveal internals; all others were written for the caller.
  return httpProblems[code].status < 500 ? messageOf(error) : undefined;
};

/** Turns an error into a problem response. */
const respondWithProblem = (ctx: ApiContext, error: unknown, dependencies: ApiDependencies): void => {
  const thrown = codeOf(error);
  const code = thrown !== undefined && isHttpProblemCode(thrown) ? thrown : 'internal_error';
  noteProblem(ctx, code, error);
  ctx.status = httpProblems[code].status;
  ctx.set(problemHeaders(code));
  const { tag, allow, retryAfter } = moreOf(error);
  if (typeof tag === 'string') ctx.set('ETag', etagOf(tag));
  if (typeof allow === 'string') ctx.set('Allow', allow);
  if (typeof retryAfter === 'number') ctx.set('Retry-After', String(retryAfter));
  const body = problemBody({
    code,
    detail: detailOf(code, error, dependencies),
    instance: ctx.path,
    traceId: ctx.state.traceId,
    publicUrl: dependencies.settings.publicUrl,
    more: ownMembers(code, error),
  });
  // It quotes parts of the request, such as its path, and a key may have been sent there.
  ctx.body = masked(JSON.stringify(body));
  ctx.type = PROBLEM_TYPE;
};

/** Turns whatever the steps below throw into a problem response. */
export const catchProblems =
  (dependencies: ApiDependencies): Step =>
  async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      respondWithProblem(ctx, error, dependencies);
    }
  };
