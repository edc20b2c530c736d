import { randomBytes } from 'node:crypto';
import { headerOf, type ApiContext, type Step, type TraceParent } from '../context';

const TRACE_PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const ALL_ZEROS = /^0+$/;

/** Undefined: it is missing, or invalid and therefore ignored. Later versions may append fields. */
export const readTraceParent = (text: string | undefined): TraceParent | undefined => {
  const [, version = '', traceId = '', spanId = '', flags = '', extra] = TRACE_PARENT.exec(text ?? '') ?? [];
  const isValid = version !== '' && version !== 'ff' && (version !== '00' || extra === undefined);
  return isValid && !ALL_ZEROS.test(traceId) && !ALL_ZEROS.test(spanId)
    ? { traceId, spanId, flags }
    : undefined;
};

export const traceParentText = ({ traceId, spanId, flags }: TraceParent): string =>
  `00-${traceId}-${spanId}-${flags}`;

const SPAN_BYTES = 8;

/** A new span of the same trace. */
export const childOf = (parent: TraceParent): TraceParent => ({
  ...parent,
  spanId: randomBytes(SPAN_BYTES).toString('hex'),
});

/** Has a span per request, if traces are collected. */
export interface Tracing {
  /** Creates one unless the request has one already, from an instrumentation of HTTP servers. */
  begin(parent: TraceParent | undefined): RequestSpan;
}

export interface RequestSpan {
  readonly traceParent: TraceParent;
  /** Runs work with this span as the active one. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** The response is complete, but has not been sent. */
  answered(ctx: ApiContext): void;
  /** The response was sent, or the client disconnected. */
  end(ctx: ApiContext): void;
}

/** The outermost step, if traces are collected. Without it, `traceparent` is only propagated. */
export const traced =
  (tracing: Tracing): Step =>
  async (ctx, next) => {
    const span = tracing.begin(readTraceParent(headerOf(ctx, 'traceparent')));
    ctx.state.traceContext = span.traceParent;
    ctx.set('traceparent', traceParentText(span.traceParent));
    ctx.res.on('close', () => span.end(ctx));
    await span.run(next);
    span.answered(ctx);
  };
