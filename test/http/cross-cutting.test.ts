import { createHash, randomUUID } from 'node:crypto';
import { besideForTests } from '../support/beside';
import { ask } from '../support/http';
import { expectProblem } from '../support/problem';
import { sendRaw } from '../support/raw';
import { loggedBy, serviceForTests } from '../support/service';
import { until } from '../support/waiting';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const CANARY = 'canary name 7f3a';

describe('every request', () => {
  const service = serviceForTests();
  const by = besideForTests(service);
  const linesOf = (trace: string) => loggedBy(service, trace);
  const call = (path: string, headers: Record<string, string> = {}, key = service.key) =>
    ask(`${service.url}${path}`, { key, headers });

  describe('trace id', () => {
    it.each(['A-b.c.d:1-', 'x'.repeat(128), 'aB3'.repeat(20)])('%s is accepted unchanged', async (trace) => {
      expect((await call('/permissions', { 'SVC-TRACE-ID': trace })).headers.get('svc-trace-id')).toBe(trace);
      const refused = await call('/nowhere', { 'svc-trace-id': trace });
      expect(refused.headers.get('svc-trace-id')).toBe(trace);
      expect(refused.json.trace_id).toBe(trace);
      await until(() => linesOf(trace).length > 0);
    });

    it.each<[string, string | RegExp, Record<string, string>]>([
      ['traceparent has one', TRACE, {}],
      ['the header has one', 'mine', { 'SVC-TRACE-ID': 'mine' }],
      ['the one in the header is not valid', TRACE, { 'SVC-TRACE-ID': 'a b' }],
      ['traceparent is of a later version', TRACE, { traceparent: `cc-${TRACE}-00f067aa0ba902b7-09-more` }],
      ['traceparent is not valid', UUID, { traceparent: `ff-${TRACE}-00f067aa0ba902b7-01` }],
      ['traceparent is empty', UUID, { traceparent: `00-${'0'.repeat(32)}-00f067aa0ba902b7-01` }],
      ['traceparent is no such thing', UUID, { traceparent: TRACE }],
    ])('if %s, is %s', async (_, expected, headers) => {
      const traceparent = `00-${TRACE}-00f067aa0ba902b7-01`;
      const response = await call('/permissions', { traceparent, ...headers });
      expect(response.headers.get('svc-trace-id')).toMatch(expected);
    });

    it.each(['', 'a b', 'x'.repeat(129), 'a/b', 'é'])('%j is replaced', async (trace) => {
      const response = await call('/nowhere', { 'SVC-TRACE-ID': trace });
      expect(response.headers.get('svc-trace-id')).toMatch(UUID);
      expect(response.json.trace_id).toBe(response.headers.get('svc-trace-id'));
    });

    it('is generated, different each time, if the client sends none', async () => {
      const made = [await call('/permissions'), await call('/permissions')].map((response) =>
        response.headers.get('svc-trace-id'),
      );
      for (const trace of made) expect(trace).toMatch(UUID);
      expect(made[0]).not.toBe(made[1]);
    });

    it('is replaced if it is sent twice', async () => {
      const twice = 'SVC-TRACE-ID: a\r\nSVC-TRACE-ID: a\r\nConnection: close\r\n';
      const [response] = await sendRaw(service.url, `GET /x HTTP/1.1\r\nHost: x\r\n${twice}\r\n`);
      expect(response!.headers.get('svc-trace-id')).toMatch(UUID);
    });

    it('is stored in the event that the request caused, with the actor and the time', async () => {
      const trace = `trace-${randomUUID()}`;
      const headers = { 'SVC-TRACE-ID': trace, 'SVC-IDEMPOTENCY-KEY': 'k' };
      const body = JSON.stringify({ name: CANARY });
      const { json } = await ask(`${service.url}/tenants/self`, {
        method: 'PUT',
        key: service.key,
        body,
        headers,
      });
      const event = (await by.events()).at(-1)!;
      expect(event.metadata).toEqual({
        client: { address: '127.0.0.1', userAgent: 'node' },
        actor: { type: 'application', id: json.modified_by, name: 'Management' },
        at: json.modified_at,
        version: 1,
        changes: [{ field: 'name', from: expect.any(String), to: CANARY }],
        keyId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        traceId: trace,
        idempotency: {
          key: 'k',
          scope: 'PUT /tenants/self',
          hash: createHash('sha256').update(body).digest('hex'),
        },
      });
    });
  });

  describe('access log', () => {
    it('has one line with the promised members', async () => {
      const cases = [
        { path: '/permissions', status: 200, route: '/permissions' },
        { path: '/tenants/self/?a=secret-query', status: 400, route: '/tenants/self' },
        { path: '/nowhere', status: 404, route: null },
        { path: '/problems/not_found', status: 200, route: '/problems/:code' },
      ];
      for (const { path, status, route } of cases) {
        const trace = randomUUID();
        const needsKey = !path.startsWith('/problems') && status !== 404;
        expect((await call(path, { 'SVC-TRACE-ID': trace })).status).toBe(status);
        await until(() => linesOf(trace).length > 0);
        const [line, ...more] = linesOf(trace);
        expect(more).toEqual([]);
        expect(line).toEqual({
          level: 30,
          time: expect.stringMatching(/^20\d\d-.*Z$/),
          trace_id: trace,
          method: 'GET',
          route,
          status,
          ms: expect.any(Number),
          client_address: '127.0.0.1',
          application_id: needsKey ? expect.stringMatching(UUID) : null,
          key_id: needsKey ? expect.stringMatching(UUID) : null,
          msg: 'request',
        });
      }
      expect(service.stderr()).not.toContain('secret-query');
    });

    it('records that a client disconnected', async () => {
      const trace = randomUUID();
      const controller = new AbortController();
      const body = new ReadableStream({ start: (sink) => sink.enqueue(Buffer.from('{"name":')) });
      const asked = fetch(`${service.url}/tenants/self`, {
        method: 'PUT',
        headers: { 'SVC-API-KEY': service.key, 'Content-Type': 'application/json', 'SVC-TRACE-ID': trace },
        body,
        duplex: 'half',
        signal: controller.signal,
      }).catch(() => undefined);
      await until(async () => (await call('/permissions')).status === 200);
      controller.abort();
      await asked;
      await until(() => linesOf(trace).length > 0);
      expect(linesOf(trace)).toEqual([
        expect.objectContaining({ aborted: true, status: null, method: 'PUT' }),
      ]);
    });

    it('never contains a key, its digest, an idempotency key or a body', async () => {
      const bad = `${service.key.slice(0, -1)}${service.key.endsWith('a') ? 'b' : 'a'}`;
      const put = (body: unknown, headers: Record<string, string> = {}, key = service.key) =>
        ask(`${service.url}/tenants/self`, { method: 'PUT', key, body, headers });
      await put({ name: CANARY }, { 'SVC-IDEMPOTENCY-KEY': 'secret-idem' });
      await put({ name: CANARY, settings: CANARY });
      await put(`{"name":"${CANARY}`);
      await put({ name: CANARY }, {}, bad);
      await call(`/${CANARY.replaceAll(' ', '-')}`, {}, bad);
      const trace = randomUUID();
      await call('/permissions', { 'SVC-TRACE-ID': trace });
      await until(() => linesOf(trace).length > 0);
      const written = service.stderr();
      for (const secret of [service.key, bad, CANARY, 'secret-idem', service.key.slice(26)])
        expect(written).not.toContain(secret);
      for (const key of [service.key, bad])
        expect(written).not.toContain(createHash('sha256').update(key).digest('hex'));
    });
  });
});

describe('settings', () => {
  const PUBLIC_URL = 'https://api.example.com/v1';
  const settings = { HEADER_PREFIX: 'ACME', PUBLIC_URL: `${PUBLIC_URL}/` };
  const service = serviceForTests(settings);

  it('HEADER_PREFIX and PUBLIC_URL work throughout', async () => {
    const call = (headers: Record<string, string>, method = 'GET', body?: unknown) =>
      ask(`${service.url}/tenants/self`, { method, headers, body });
    const key = { 'acme-api-key': service.key };
    expect((await call(key)).status).toBe(200);
    const refused = await call({ 'SVC-API-KEY': service.key });
    expectProblem(refused, 401, 'key_refused');
    expect(refused.json.type).toBe(`${PUBLIC_URL}/problems/key_refused`);
    expect((await call({})).json.detail).toContain('the header ACME-API-KEY');
    const traced = await call({ ...key, 'ACME-TRACE-ID': 'mine', 'SVC-TRACE-ID': 'not-mine' });
    expect(traced.headers.get('acme-trace-id')).toBe('mine');
    expect([...traced.headers.keys()].filter((name) => name.startsWith('svc'))).toEqual([]);
    const idempotent = { ...key, 'ACME-IDEMPOTENCY-KEY': 'k', 'SVC-IDEMPOTENCY-KEY': 'ignored' };
    const first = await call(idempotent, 'PUT', { name: 'B' });
    expect((await call(idempotent, 'PUT', { name: 'B' })).text).toBe(first.text);
    expect((await call(idempotent, 'PUT', { name: 'C' })).status).toBe(422);
    const differing = await call({ ...idempotent, 'Idempotency-Key': 'x' }, 'PUT', { name: 'B' });
    expect(Object.keys(differing.json.errors)).toEqual(['ACME-IDEMPOTENCY-KEY']);
    expect(service.stdout()).toContain(`ACME-API-KEY: ${service.key}`);
  });
});
