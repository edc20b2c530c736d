import {
  context,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
  type Tracer,
} from '@opentelemetry/api';
import type { EventLog } from '../event-log/event-log';
import { codeOf } from '../fault';
import type { ObservedRequest } from '../http/answer/request-metrics';
import type { TraceParent } from '../http/request/trace-parent';
import type { Tracing } from '../http/request/tracing';
import { programVersion } from '../version';

/**
 * Spans through the OpenTelemetry API. They exist only if an SDK was registered before this program started, usually with
 * `node --require`; it is configured there. Without one, tracing costs nothing.
 */
export interface Traces {
  readonly requests: Tracing;
  /** Wraps the log to create a span per append. */
  observed(log: EventLog): EventLog;
}

const isRegistered = (): boolean => {
  const provider = trace.getTracerProvider() as { getDelegate?: () => object };
  return provider.getDelegate?.().constructor.name !== 'NoopTracerProvider';
};

const contextOf = (parent: TraceParent | undefined): Context =>
  parent === undefined
    ? ROOT_CONTEXT
    : trace.setSpanContext(ROOT_CONTEXT, {
        traceId: parent.traceId,
        spanId: parent.spanId,
        traceFlags: Number.parseInt(parent.flags, 16),
        isRemote: true,
      });

const FAILED = 500;

const attributesOf = ({ method, route, status, problem }: ObservedRequest) => ({
  'http.request.method': method,
  ...(route === undefined ? {} : { 'http.route': route }),
  ...(status === undefined ? {} : { 'http.response.status_code': status }),
  ...(problem === undefined ? {} : { 'error.type': problem }),
});

const requestSpans = (tracer: Tracer): Tracing => ({
  begin: (parent) => {
    const span = tracer.startSpan('HTTP', { kind: SpanKind.SERVER }, contextOf(parent));
    const { traceId, spanId, traceFlags } = span.spanContext();
    const within = trace.setSpan(ROOT_CONTEXT, span);
    return {
      place: { traceId, spanId, flags: traceFlags.toString(16).padStart(2, '0') },
      run: (work) => context.with(within, work),
      end: (request) => {
        span.updateName([request.method, request.route].filter((part) => part !== undefined).join(' '));
        span.setAttributes(attributesOf(request));
        if ((request.status ?? 0) >= FAILED) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      },
    };
  },
});

const appendSpans =
  (tracer: Tracer): Traces['observed'] =>
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
  return { requests: requestSpans(tracer), observed: appendSpans(tracer) };
};
