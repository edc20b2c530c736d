import { observedRequest, type ObservedRequest } from '../answer/request-metrics';
import { headerOf, type Step } from '../api-context';
import { readTraceParent, traceParentText, type TraceParent } from './trace-parent';

/** Spans of requests, for whoever collects traces. */
export interface Tracing {
  begin(parent: TraceParent | undefined): RequestSpan;
}

export interface RequestSpan {
  readonly place: TraceParent;
  /** What is done in it belongs to the span. */
  run<T>(work: () => Promise<T>): Promise<T>;
  end(request: ObservedRequest): void;
}

/** The outermost step where traces are collected; without it a `traceparent` is merely continued. */
export const traced =
  (tracing: Tracing): Step =>
  async (ctx, next) => {
    const span = tracing.begin(readTraceParent(headerOf(ctx, 'traceparent')));
    ctx.state.place = span.place;
    ctx.set('traceparent', traceParentText(span.place));
    ctx.res.on('close', () => span.end(observedRequest(ctx)));
    await span.run(next);
  };
