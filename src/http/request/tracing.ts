import { observedRequest, type ObservedRequest } from '../answer/request-metrics';
import { headerOf, type Step } from '../api-context';
import { readTraceParent, traceParentText, type TraceParent } from './trace-parent';

/** Creates a span per request, if traces are collected. */
export interface Tracing {
  begin(parent: TraceParent | undefined): RequestSpan;
}

export interface RequestSpan {
  readonly place: TraceParent;
  /** Runs work with this span as the active one. */
  run<T>(work: () => Promise<T>): Promise<T>;
  end(request: ObservedRequest): void;
}

/** The outermost step, if traces are collected. Without it, `traceparent` is only propagated. */
export const traced =
  (tracing: Tracing): Step =>
  async (ctx, next) => {
    const span = tracing.begin(readTraceParent(headerOf(ctx, 'traceparent')));
    ctx.state.traceContext = span.place;
    ctx.set('traceparent', traceParentText(span.place));
    ctx.res.on('close', () => span.end(observedRequest(ctx)));
    await span.run(next);
  };
