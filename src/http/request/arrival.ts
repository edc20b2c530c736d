import { randomUUID } from 'node:crypto';
import { isoNow, monotonicMs } from '../../clock';
import { looksLikeKey } from '../../domain/key-like';
import { fault } from '../../fault';
import { gatherFields, putFields, setField } from '../answer/fields';
import { securityHeaders } from '../answer/security-headers';
import { headerOf, type ApiContext, type ApiParts, type Step } from '../api-context';

/** An answer is promised within 2 s of the request's arrival; the rest is for the way there and back. */
const ANSWER_WITHIN_MS = 1_900;

const TRACE_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** It is logged, kept and sent back: somebody's API key must not be. */
const isTraceId = (text: string): boolean => TRACE_ID.test(text) && !looksLikeKey(text);

/** The request is here now: the time that its event will bear, and until when it is to be answered. */
export const arrived = (ctx: ApiContext): void => {
  ctx.state.at = isoNow();
  ctx.state.deadline = monotonicMs() + ANSWER_WITHIN_MS;
};

/** The HTTP parser lets targets through that have no path, as `a://b`, or that are no URL at all. */
const pathOf = (ctx: ApiContext): string | undefined => {
  try {
    const { path } = ctx;
    return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
  } catch {
    return undefined;
  }
};

const securityFields = Object.entries(securityHeaders);

/** First of all: when it came, and under which trace id it is known from here on. */
export const arrival = ({ headers, isOpen }: ApiParts): Step => {
  const traceHeader = headers.traceId.toLowerCase();
  return (ctx, next) => {
    const { req, state } = ctx;
    const sent = headerOf(ctx, traceHeader);
    state.traceId = sent !== undefined && isTraceId(sent) ? sent : randomUUID();
    arrived(ctx);
    state.arrivedMs = state.deadline - ANSWER_WITHIN_MS;
    const path = pathOf(ctx);
    if (path === undefined) {
      req.url = '/';
      state.pathless = true;
    }
    state.path = path ?? '/';
    const isGathered = gatherFields(ctx);
    for (const [name, value] of securityFields) setField(ctx, name, value);
    setField(ctx, headers.traceId, state.traceId);
    if (!isOpen()) setField(ctx, 'Connection', 'close');
    return isGathered ? next().then(() => putFields(ctx)) : next();
  };
};

/** Node keeps the first of several. */
const hostCount = ({ req: { rawHeaders } }: ApiContext): number => {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
};

/** Node's own answer to a missing Host header has no body, so the check is ours. Whoever sends two wants to confuse. */
export const requireHost: Step = (ctx, next) => {
  const hosts = hostCount(ctx);
  if (hosts > 1 || (ctx.req.httpVersion === '1.1' && hosts === 0))
    throw fault('malformed_request', 'An HTTP/1.1 request needs one Host header.');
  return next();
};

export const requirePath: Step = (ctx, next) => {
  if (ctx.state.pathless === true) throw fault('malformed_request', 'The target of the request has no path.');
  return next();
};
