import { randomBytes } from 'node:crypto';

/** The position of a request in a trace: the header `traceparent` of W3C Trace Context. */
export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  /** Two hex digits; the last bit says whether the caller samples the trace. */
  readonly flags: string;
}

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
