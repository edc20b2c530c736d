import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TraceParent } from '../../src/http/context';
import { childOf, readTraceParent, traceParentText } from '../../src/http/request/tracing';
import { SpanKind } from '@opentelemetry/api';
import { ask } from '../support/http';
import { freshFolder } from '../support/folders';
import { answersIn, converse } from '../support/raw';
import { serviceProcess, startService, type Service } from '../support/service';
import { until } from '../support/waiting';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = `00-${TRACE}-00f067aa0ba902b7-01`;

describe('traceparent', () => {
  it.each<readonly [string | undefined, TraceParent | undefined]>([
    [PARENT, { traceId: TRACE, spanId: '00f067aa0ba902b7', flags: '01' }],
    [
      `cc-${TRACE}-00f067aa0ba902b7-09-what-comes-later`,
      { traceId: TRACE, spanId: '00f067aa0ba902b7', flags: '09' },
    ],
    ...[
      undefined,
      '',
      'x',
      `${PARENT}-more`,
      `ff-${TRACE}-00f067aa0ba902b7-01`,
      `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
      `00-${TRACE}-${'0'.repeat(16)}-01`,
      PARENT.toUpperCase(),
    ].map((text) => [text, undefined] as const),
  ])('%s is parsed as %j', (text, expected) => {
    expect(readTraceParent(text)).toEqual(expected);
  });

  it('is continued with another span of the same trace', () => {
    const parent = readTraceParent(PARENT);
    if (parent === undefined) throw new Error('It is valid.');
    expect(traceParentText(parent)).toBe(PARENT);
    expect(traceParentText(childOf(parent))).toMatch(
      new RegExp(`^00-${TRACE}-(?!00f067aa0ba902b7)[0-9a-f]{16}-01$`),
    );
  });
});

describe('a service that takes part in a trace', () => {
  const get = (service: Service, headers: Record<string, string> = {}) =>
    ask(`${service.url}/tenants/self`, { key: service.key, headers });

  it('continues it in its responses, and uses its id as the trace id if no other was sent', async () => {
    const service = await startService();
    try {
      const { headers } = await get(service, { traceparent: PARENT });
      expect(headers.get('traceparent')).toMatch(
        new RegExp(`^00-${TRACE}-(?!00f067aa0ba902b7)[0-9a-f]{16}-01$`),
      );
      expect(headers.get('svc-trace-id')).toBe(TRACE);
      const both = await get(service, { traceparent: PARENT, 'SVC-TRACE-ID': 'mine' });
      expect(both.headers.get('svc-trace-id')).toBe('mine');
      for (const sent of [{}, { traceparent: 'nonsense' }])
        expect((await get(service, sent)).headers.get('traceparent')).toBeNull();
    } finally {
      await service.stop();
    }
  });

  const collecting = async (env: Record<string, string> = {}) => {
    const file = join(freshFolder(), 'spans');
    const service = await serviceProcess({
      SPANS: file,
      NODE_OPTIONS: `--require ${join(__dirname, '..', 'support', 'collected-spans.js')}`,
      ...env,
    });
    const spans = () =>
      (existsSync(file) ? readFileSync(file, 'utf8') : '')
        .trim()
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Record<string, unknown> & { name: string });
    return { service, spans };
  };

  it('exports spans of requests and appends if a collector is configured', async () => {
    const { service, spans } = await collecting();
    try {
      const put = await ask(`${service.url}/tenants/self`, {
        method: 'PUT',
        key: service.key,
        headers: { traceparent: PARENT },
        body: { name: 'Traced' },
      });
      const own = readTraceParent(put.headers.get('traceparent') ?? undefined);
      expect(own?.traceId).toBe(TRACE);
      await ask(`${service.url}/nowhere`, { key: service.key });
      await until(() => spans().length >= 3 && spans().some(({ name }) => name === 'GET'));
      expect(spans().find(({ name }) => name === 'PUT /tenants/self')).toMatchObject({
        traceId: TRACE,
        spanId: own?.spanId,
        parentSpanId: '00f067aa0ba902b7',
        status: 0,
        attributes: {
          'http.request.method': 'PUT',
          'http.route': '/tenants/self',
          'http.response.status_code': 200,
        },
      });
      expect(spans().find(({ name, traceId }) => name === 'append' && traceId === TRACE)).toMatchObject({
        parentSpanId: own?.spanId,
      });
      expect(spans().find(({ name }) => name === 'GET')).toMatchObject({
        attributes: { 'http.response.status_code': 404, 'error.type': 'not_found' },
      });
      expect(JSON.stringify(spans())).not.toContain(service.key);
    } finally {
      await service.stop();
    }
  });

  it('describes the span of an instrumented HTTP server instead of creating another one', async () => {
    const { service, spans } = await collecting({ SERVER_SPANS: 'true' });
    const traces = ['a', 'b', 'c'].map((digit) => digit.repeat(32));
    try {
      const conversation = converse(service.url);
      const requests = traces.map((traceId, at) => {
        const body = JSON.stringify({ name: `Name ${at}` });
        const last = at === traces.length - 1 ? 'Connection: close\r\n' : '';
        return `PUT /tenants/self HTTP/1.1\r\nHost: x\r\nSVC-API-KEY: ${service.key}\r\nContent-Type: application/json\r\ntraceparent: 00-${traceId}-00f067aa0ba902b7-01\r\nContent-Length: ${body.length}\r\n${last}\r\n${body}`;
      });
      // Sent at once, so that they wait for each other: each must keep its own trace.
      conversation.socket.write(requests.join(''));
      await conversation.closed;
      const answers = answersIn(conversation.received());
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
      await ask(`${service.url}/nowhere`, { key: service.key, headers: { traceparent: PARENT } });
      const server = (traceId: string) =>
        spans().filter((span) => span['kind'] === SpanKind.SERVER && span['traceId'] === traceId);
      await until(() => [...traces, TRACE].every((traceId) => server(traceId).length > 0));
      for (const [at, traceId] of traces.entries()) {
        const own = readTraceParent(answers[at]?.headers.get('traceparent') ?? undefined);
        expect(server(traceId)).toEqual([
          expect.objectContaining({
            name: 'PUT /tenants/self',
            spanId: own?.spanId,
            parentSpanId: '00f067aa0ba902b7',
            attributes: { 'http.request.method': 'PUT', 'http.route': '/tenants/self' },
          }),
        ]);
        const inner = spans().find((span) => span.name === 'middleware' && span['traceId'] === traceId);
        expect(inner).toMatchObject({ parentSpanId: own?.spanId });
        expect(spans().filter((span) => span.name === 'append' && span['traceId'] === traceId)).toEqual([
          expect.objectContaining({ parentSpanId: inner?.['spanId'] }),
        ]);
      }
      expect(server(TRACE)).toMatchObject([{ name: 'GET', attributes: { 'error.type': 'not_found' } }]);
    } finally {
      await service.stop();
    }
  });
});
