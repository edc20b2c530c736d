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

/** Seconds after which it is worth trying again. */
const RETRY_AFTER = '1';

/** The one place that makes error bodies: RFC 9457, the same from every layer. */
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

/** These do not go away by themselves: only an operator or another request can change them. */
const FINAL: ReadonlySet<HttpProblemCode> = new Set([
  'tenant_unreadable',
  'log_set_back',
  'own_access_would_end',
  'last_managing_key',
  'application_type_fixed',
  'too_many_applications',
  'too_many_keys',
  'upgrade_unfinished',
]);

const mayGoAway = (code: HttpProblemCode): boolean => {
  const { status } = httpProblems[code];
  return (status === 503 || status === 409) && !FINAL.has(code);
};

export const problemHeaders = (code: HttpProblemCode): Readonly<Record<string, string>> => ({
  'Cache-Control': 'no-store',
  ...(httpProblems[code].status === 401 ? { 'WWW-Authenticate': 'ApiKey realm="tenant-ledger"' } : {}),
  ...(mayGoAway(code) ? { 'Retry-After': RETRY_AFTER } : {}),
});
