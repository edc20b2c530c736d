import { randomBytes } from 'node:crypto';

/** The place of a request in a trace, as W3C Trace Context writes it in the header `traceparent`. */
export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  /** Two hex digits; the last bit says whether the caller keeps the trace. */
  readonly flags: string;
}

const PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NONE = /^0+$/;

/** Undefined: there is none, or it is not valid and counts as none. Later versions may append to it. */
export const readTraceParent = (text: string | undefined): TraceParent | undefined => {
  const [, version = '', traceId = '', spanId = '', flags = '', more] = PARENT.exec(text ?? '') ?? [];
  const isValid = version !== '' && version !== 'ff' && (version !== '00' || more === undefined);
  return isValid && !NONE.test(traceId) && !NONE.test(spanId) ? { traceId, spanId, flags } : undefined;
};

export const traceParentText = ({ traceId, spanId, flags }: TraceParent): string =>
  `00-${traceId}-${spanId}-${flags}`;

const SPAN_BYTES = 8;

/** A step of the same trace. */
export const childOf = (parent: TraceParent): TraceParent => ({
  ...parent,
  spanId: randomBytes(SPAN_BYTES).toString('hex'),
});
