import { problems, type HttpProblemCode } from '../problems';

/** The one place that makes error bodies: RFC 9457, the same from every layer. */
export interface ProblemBody {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance: string;
  readonly code: HttpProblemCode;
  readonly trace_id: string;
  readonly [more: string]: unknown;
}

export interface Occurrence {
  readonly code: HttpProblemCode;
  readonly detail?: string;
  readonly instance: string;
  readonly traceId: string;
  readonly publicUrl: string;
  readonly more?: Readonly<Record<string, unknown>>;
}

export const PROBLEM_TYPE = 'application/problem+json';

/** Seconds after which it makes sense to try again. */
const RETRY_AFTER = '1';

export const problemBody = ({
  code,
  detail,
  instance,
  traceId,
  publicUrl,
  more,
}: Occurrence): ProblemBody => {
  const { status = 500, title, meaning } = problems[code];
  return {
    type: `${publicUrl}/problems/${code}`,
    title,
    status,
    detail: detail ?? meaning,
    instance,
    code,
    trace_id: traceId,
    ...more,
  };
};

export const problemHeaders = (code: HttpProblemCode): Readonly<Record<string, string>> => ({
  'Cache-Control': 'no-store',
  ...(problems[code].status === 401 ? { 'WWW-Authenticate': 'ApiKey realm="tenant-ledger"' } : {}),
  ...(problems[code].status === 503 || problems[code].status === 409 ? { 'Retry-After': RETRY_AFTER } : {}),
});
