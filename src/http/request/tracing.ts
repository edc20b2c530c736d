import { headerOf, type ApiContext, type Step } from '../context';
import { readTraceParent, traceParentText, type TraceParent } from './trace-parent';

/** Has a span per request, if traces are collected. */
export interface Tracing {
  /** Creates one unless the request has one already, from an instrumentation of HTTP servers. */
  begin(parent: TraceParent | undefined): RequestSpan;
}

export interface RequestSpan {
  readonly place: TraceParent;
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
    ctx.state.traceContext = span.place;
    ctx.set('traceparent', traceParentText(span.place));
    ctx.res.on('close', () => span.end(ctx));
    await span.run(next);
    span.answered(ctx);
  };
