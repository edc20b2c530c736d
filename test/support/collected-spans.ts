import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { Server, type IncomingMessage, type ServerResponse } from 'node:http';
import {
  context,
  createContextKey,
  ROOT_CONTEXT,
  SpanKind,
  trace,
  type Attributes,
  type Context,
  type Span,
  type SpanOptions,
} from '@opentelemetry/api';

/**
 * Loaded by `node --require` before the service, in place of OpenTelemetry's SDK: it appends every span that ends as a
 * line to the file SPANS. With SERVER_SPANS it also creates a span per request, as the instrumentations of HTTP and Koa
 * do.
 */
const FILE = process.env['SPANS'] ?? '';
const active = new AsyncLocalStorage<Context>();

context.setGlobalContextManager({
  active: () => active.getStore() ?? ROOT_CONTEXT,
  with: (within, work, self, ...args) => active.run(within, () => work.apply(self as never, args)),
  bind: (_, target) => target,
  enable() {
    return this;
  },
  disable() {
    return this;
  },
});

const startSpan = (first: string, { kind }: SpanOptions = {}, within: Context = ROOT_CONTEXT): Span => {
  const parent = trace.getSpanContext(within);
  const own = {
    traceId: parent?.traceId ?? randomBytes(16).toString('hex'),
    spanId: randomBytes(8).toString('hex'),
    traceFlags: 1,
  };
  let [name, status] = [first, 0];
  const attributes: Attributes = {};
  const span = {
    spanContext: () => own,
    setAttributes: (more: Attributes) => Object.assign(attributes, more) && span,
    setStatus: ({ code }: { code: number }) => (status = code) >= 0 && span,
    updateName: (better: string) => (name = better) !== '' && span,
    end: () =>
      appendFileSync(
        FILE,
        `${JSON.stringify({ ...own, parentSpanId: parent?.spanId, name, kind, status, attributes })}\n`,
      ),
  };
  return span as unknown as Span;
};

trace.setGlobalTracerProvider({
  getTracer: () => ({ startSpan, startActiveSpan: () => undefined as never }),
});

const RPC_METADATA = createContextKey('OpenTelemetry SDK Context Key RPC_METADATA');

const remoteContext = (traceparent: string | undefined): Context => {
  const [, traceId = '', spanId = ''] = traceparent?.split('-') ?? [];
  return traceId === ''
    ? ROOT_CONTEXT
    : trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: 1, isRemote: true });
};

const contextOf = (request: IncomingMessage, response: ServerResponse): Context => {
  const parent = remoteContext(request.headers['traceparent'] as string | undefined);
  const span = startSpan(request.method ?? '', { kind: SpanKind.SERVER }, parent);
  response.on('close', () => span.end());
  const within = trace.setSpan(parent.setValue(RPC_METADATA, { type: 'http', span }), span);
  const framework = startSpan('middleware', { kind: SpanKind.INTERNAL }, within);
  response.on('close', () => framework.end());
  return trace.setSpan(within, framework);
};

if (process.env['SERVER_SPANS'] === 'true') {
  const emit = Server.prototype.emit as (this: Server, name: string, ...args: unknown[]) => boolean;
  Server.prototype.emit = function emitWithSpan(this: Server, name: string, ...args: unknown[]): boolean {
    if (name !== 'request') return emit.call(this, name, ...args);
    const within = contextOf(args[0] as IncomingMessage, args[1] as ServerResponse);
    return context.with(within, () => emit.call(this, name, ...args));
  };
}
