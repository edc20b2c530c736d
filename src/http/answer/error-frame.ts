import { masked } from '../../domain/key-like';
import { codeOf, messageOf } from '../../fault';
import { isHttpProblemCode, problems, type HttpProblemCode } from '../../problems';
import type { ApiContext, ApiParts, Step } from '../api-context';
import { etagOf } from '../request/conditions';
import { noteRefusedAccess } from '../request/refused-access';
import { PROBLEM_TYPE, problemBody, problemHeaders } from './problem-body';

/** These details were written for the caller; those of other problems may name what is ours alone. */
const tellsCaller = (code: HttpProblemCode): boolean => (problems[code].status ?? 500) < 500;

/** What a problem adds to its body. A reason or a revision is not among it. */
const SHOWN = [
  'errors',
  'required_permission',
  'application_type',
  'assignable',
  'violated_policies',
  'progress',
] as const;

const shown = (error: unknown): Record<string, unknown> => {
  const more = (error as { more?: Record<string, unknown> }).more ?? {};
  return Object.fromEntries(
    SHOWN.filter((name) => more[name] !== undefined).map((name) => [name, more[name]]),
  );
};

const note = (ctx: ApiContext, code: HttpProblemCode, error: unknown): void => {
  const reason = (error as { more?: { reason?: unknown } }).more?.reason;
  if (typeof reason === 'string') ctx.state.reason = reason;
  else if (problems[code].status === 503) ctx.state.reason = messageOf(error);
  if (code === 'internal_error') ctx.state.error = error;
};

/** The same for every reason: a stranger learns nothing from it, an honest client what to send. */
const keyDetail = (header: string): string =>
  `Send a good API key in the header ${header}: it is missing, malformed, unknown, expired or revoked, or its tenant is deleted.`;

const detailOf = (code: HttpProblemCode, error: unknown, { headers }: ApiParts): string | undefined => {
  if (code === 'key_refused') return keyDetail(headers.apiKey);
  return tellsCaller(code) ? messageOf(error) : undefined;
};

const answer = (ctx: ApiContext, error: unknown, parts: ApiParts): void => {
  const thrown = codeOf(error);
  const code = thrown !== undefined && isHttpProblemCode(thrown) ? thrown : 'internal_error';
  note(ctx, code, error);
  const { status = 500 } = problems[code];
  ctx.status = status;
  ctx.set(problemHeaders(code));
  const { revision, allow, retryAfter } = (error as { more?: Record<string, unknown> }).more ?? {};
  if (typeof revision === 'number') ctx.set('ETag', etagOf(revision));
  if (typeof allow === 'string') ctx.set('Allow', allow);
  if (typeof retryAfter === 'number') ctx.set('Retry-After', String(retryAfter));
  const detail = detailOf(code, error, parts);
  const body = problemBody({
    code,
    ...(detail === undefined ? {} : { detail }),
    instance: ctx.path,
    traceId: ctx.state.traceId,
    publicUrl: parts.publicUrl,
    more: shown(error),
  });
  // It names what was sent: a path, a field. A key may have been sent there.
  ctx.body = masked(JSON.stringify(body));
  ctx.type = PROBLEM_TYPE;
};

/** Whatever is thrown further in becomes a problem body here. */
export const errorFrame =
  (parts: ApiParts): Step =>
  async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      noteRefusedAccess(ctx, error, parts);
      answer(ctx, error, parts);
    }
  };
