import { ask } from '../support/http';
import { plainRequest, type PlainResponse } from '../support/plain-request';
import { serviceForTests, startService } from '../support/service';

const OURS = 'https://app.example.com';
const FOREIGN = 'https://evil.example.com';

interface Described {
  readonly parameters?: readonly { readonly in: string; readonly name: string }[];
  readonly responses: Readonly<Record<string, { readonly headers?: object }>>;
}

describe('the API, called by pages of other origins', () => {
  const service = serviceForTests({ CORS_ORIGINS: `${OURS},http://localhost:3000`, RATE_LIMITS: '' });

  const from = (origin: string, more: Record<string, string> = {}) =>
    plainRequest(`${service.url}/tenants/self`, { Origin: origin, 'SVC-API-KEY': service.key, ...more });
  const preflight = (origin: string) =>
    plainRequest(
      `${service.url}/tenants/self`,
      {
        Origin: origin,
        'Access-Control-Request-Method': 'PUT',
        'Access-Control-Request-Headers': 'svc-api-key,content-type',
      },
      'OPTIONS',
    );

  it('exposes responses and the headers that matter if the origin is allowed', async () => {
    const { status, headers } = await from(OURS);
    expect(status).toBe(200);
    expect(headers['access-control-allow-origin']).toBe(OURS);
    expect(headers['access-control-expose-headers']).toContain('ETag');
    expect(headers['access-control-expose-headers']).toContain('SVC-READ-PENDING');
    expect(headers['vary']).toMatch(/Origin/);
    expect(headers['access-control-allow-credentials']).toBeUndefined();
  });

  it('exposes every header that a response may have, and allows every header that a request may have', async () => {
    const { json } = await ask(`${service.url}/openapi.json`);
    const listed = async (name: string, answer: Promise<PlainResponse>): Promise<readonly string[]> =>
      String((await answer).headers[name])
        .toLowerCase()
        .split(', ');
    // Browsers expose these anyway, and set them themselves.
    const safelisted = ['cache-control', 'content-type', 'vary'];
    const operations: readonly Described[] = Object.values(json.paths).flatMap((path) =>
      Object.values(path as Record<string, Described>),
    );
    const names = (all: readonly string[]) => [...new Set(all.map((name) => name.toLowerCase()))];
    const inResponses = [...operations, json.components as Described]
      .flatMap(({ responses }) => Object.values(responses))
      .flatMap(({ headers = {} }) => Object.keys(headers));
    const exposed = await listed('access-control-expose-headers', from(OURS));
    expect(names(inResponses)).toEqual(expect.arrayContaining(['etag', 'retry-after', 'svc-trace-id']));
    expect(names(inResponses).filter((name) => ![...exposed, ...safelisted].includes(name))).toEqual([]);
    const inRequests = operations
      .flatMap(({ parameters = [] }) => parameters)
      .filter((parameter) => parameter.in === 'header')
      .map(({ name }) => name);
    const allowed = await listed('access-control-allow-headers', preflight(OURS));
    expect(names(inRequests)).toEqual(expect.arrayContaining(['if-match', 'svc-idempotency-key']));
    expect(
      names([...inRequests, 'SVC-API-KEY', 'Content-Type', 'Last-Event-ID']).filter(
        (name) => !allowed.includes(name),
      ),
    ).toEqual([]);
  });

  it('exposes nothing to an origin that is not allowed', async () => {
    for (const origin of [FOREIGN, 'null', `${OURS}.evil.example`, OURS.replace('https', 'http')]) {
      const { headers } = await from(origin);
      expect(headers['access-control-allow-origin']).toBeUndefined();
      expect(headers['vary']).toMatch(/Origin/);
    }
  });

  it('counts preflights, and lets any page read a response above the limit, if all origins are allowed', async () => {
    const other = await startService({ CORS_ORIGINS: '*', RATE_LIMITS: 'global=1/60/60' });
    const call = (method: string) =>
      plainRequest(other.url, { Origin: FOREIGN, 'Access-Control-Request-Method': 'PUT' }, method);
    const answers = [await call('OPTIONS'), await call('GET')];
    expect(answers.map(({ status, headers }) => [status, headers['access-control-allow-origin']])).toEqual([
      [204, '*'],
      [429, '*'],
    ]);
    expect(answers[1]?.headers['access-control-expose-headers']).toContain('Retry-After');
  });

  it('lets pages take part in traces', async () => {
    const { headers } = await preflight(OURS);
    const allowed = String(headers['access-control-allow-headers']).split(', ');
    expect(allowed).toEqual(expect.arrayContaining(['traceparent', 'tracestate']));
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    expect((await from(OURS, { traceparent })).headers['svc-trace-id']).toBe('a'.repeat(32));
  });

  it('sends no CORS headers where no origin is allowed', async () => {
    const other = await startService();
    const { headers } = await plainRequest(`${other.url}/permissions`, {
      Origin: OURS,
      'SVC-API-KEY': other.key,
    });
    const asked = await plainRequest(`${other.url}/tenants/self`, { Origin: OURS }, 'OPTIONS');
    const names = [...Object.keys(headers), ...Object.keys(asked.headers)];
    expect(names.filter((name) => name.startsWith('access-control'))).toEqual([]);
  });
});
