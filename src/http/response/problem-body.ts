import { httpProblems, type HttpProblemCode } from '../../problems';

interface Occurrence {
  readonly code: HttpProblemCode;
  readonly detail?: string | undefined;
  readonly instance: string;
  readonly traceId: string;
  readonly publicUrl: string;
  readonly more?: Readonly<Record<string, unknown>>;
}

export const PROBLEM_TYPE = 'application/problem+json';

/** Seconds after which a retry is worthwhile. */
const RETRY_AFTER = '1';

/** The only place that creates error bodies (RFC 9457), so they are the same from every layer. */
export const problemBody = ({ code, detail, instance, traceId, publicUrl, more }: Occurrence) => {
  const { status, title, meaning } = httpProblems[code];
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

/** These do not resolve by themselves, only through an operator or another request. */
const PERMANENT: ReadonlySet<HttpProblemCode> = new Set([
  'tenant_unreadable',
  'application_type_fixed',
  'quota_exceeded',
]);

export const problemHeaders = (code: HttpProblemCode): Readonly<Record<string, string>> => {
  const { status } = httpProblems[code];
  const isTransient = (status === 503 || status === 409) && !PERMANENT.has(code);
  return {
    'Cache-Control': 'no-store',
    ...(status === 401 ? { 'WWW-Authenticate': 'ApiKey realm="tenant-ledger"' } : {}),
    ...(isTransient ? { 'Retry-After': RETRY_AFTER } : {}),
  };
};
