import {
  context,
  createContextKey,
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
  type Span,
  type Tracer,
} from '@opentelemetry/api';
import type { EventLog } from '../event-log/event-log';
import { codeOf } from '../fault';
import type { ApiContext, TraceParent } from '../http/context';
import type { RequestSpan, Tracing } from '../http/request/tracing';
import { sentStatus } from '../http/response/access-log';
import { programVersion } from '../version';

/**
 * Spans through the OpenTelemetry API. They exist only if an SDK was registered before this program started, usually with
 * `node --require`; it is configured there. Without one, tracing costs nothing.
 */
export interface Traces {
  readonly requests: Tracing;
  /** Creates a span per append to a log. */
  traced(log: EventLog): EventLog;
}

const isRegistered = (): boolean => {
  const provider = trace.getTracerProvider() as { getDelegate?: () => object };
  return provider.getDelegate?.().constructor.name !== 'NoopTracerProvider';
};

const contextOf = (parent: TraceParent | undefined): Context =>
  parent === undefined
    ? context.active()
    : trace.setSpanContext(context.active(), {
        traceId: parent.traceId,
        spanId: parent.spanId,
        traceFlags: Number.parseInt(parent.flags, 16),
        isRemote: true,
      });

const traceParentOf = (span: Span): TraceParent => {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return { traceId, spanId, flags: traceFlags.toString(16).padStart(2, '0') };
};

const FAILED = 500;

const describe = (span: Span, ctx: ApiContext): void => {
  const { route, problem } = ctx.state;
  const status = sentStatus(ctx);
  span.updateName(route === undefined ? ctx.method : `${ctx.method} ${route}`);
  span.setAttributes({
    'http.request.method': ctx.method,
    ...(route === undefined ? {} : { 'http.route': route }),
    ...(status === undefined ? {} : { 'http.response.status_code': status }),
    ...(problem === undefined ? {} : { 'error.type': problem }),
  });
};

/** Where the instrumentation of HTTP servers keeps its span for those of frameworks, whose own spans are then active. */
const RPC_METADATA = createContextKey('OpenTelemetry SDK Context Key RPC_METADATA');

const instrumentedSpan = (active: Context): Span | undefined => {
  const metadata = active.getValue(RPC_METADATA) as { readonly span?: Span } | undefined;
  const span = metadata?.span ?? trace.getSpan(active);
  return span !== undefined && trace.isSpanContextValid(span.spanContext()) ? span : undefined;
};

/** The instrumentation ends it, and records the status. */
const existingSpan = (span: Span): RequestSpan => ({
  traceParent: traceParentOf(span),
  run: (work) => work(),
  answered: (ctx) => describe(span, ctx),
  end: () => undefined,
});

const newSpan = (span: Span): RequestSpan => ({
  traceParent: traceParentOf(span),
  run: (work) => context.with(trace.setSpan(context.active(), span), work),
  answered: () => undefined,
  end: (ctx) => {
    describe(span, ctx);
    if ((sentStatus(ctx) ?? 0) >= FAILED) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  },
});

const requestSpans = (tracer: Tracer): Tracing => ({
  begin: (parent) => {
    const instrumented = instrumentedSpan(context.active());
    if (instrumented !== undefined) return existingSpan(instrumented);
    return newSpan(tracer.startSpan('HTTP', { kind: SpanKind.SERVER }, contextOf(parent)));
  },
});

const appendSpans =
  (tracer: Tracer): Traces['traced'] =>
  (log) => ({
    ...log,
    append: async (...append) => {
      const span = tracer.startSpan('append', { kind: SpanKind.CLIENT }, context.active());
      try {
        return await log.append(...append);
      } catch (error) {
        span.setAttributes({ 'error.type': codeOf(error) ?? 'failed' });
        span.setStatus({ code: SpanStatusCode.ERROR });
        throw error;
      } finally {
        span.end();
      }
    },
  });

/** Undefined: nobody collects traces. */
export const openTraces = (): Traces | undefined => {
  if (!isRegistered()) return undefined;
  const tracer = trace.getTracer('tenant-ledger', programVersion());
  return { requests: requestSpans(tracer), traced: appendSpans(tracer) };
};
