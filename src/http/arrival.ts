import { randomUUID } from 'node:crypto';
import { isoNow, monotonicMs } from '../clock';
import { masked } from '../domain/key-like';
import { fault } from '../fault';
import { securityHeaders } from './security-headers';
import { headerOf, type ApiContext, type ApiParts, type Step } from './api-context';

/** An answer is promised within 2 s of the request's arrival; the rest is for the way there and back. */
const ANSWER_WITHIN_MS = 1_900;

const TRACE_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** It is logged, kept and sent back: somebody's API key must not be. */
const isTraceId = (text: string): boolean => TRACE_ID.test(text) && masked(text) === text;

/** The request is here now: the time that its event will bear, and until when it is to be answered. */
export const arrived = (ctx: ApiContext): void => {
  ctx.state.at = isoNow();
  ctx.state.deadline = monotonicMs() + ANSWER_WITHIN_MS;
};

const hasPath = (ctx: ApiContext): boolean => {
  try {
    return typeof ctx.path === 'string';
  } catch {
    return false;
  }
};

/** First of all: when it came, and under which trace id it is known from here on. */
export const arrival =
  ({ headers, isOpen }: ApiParts): Step =>
  async (ctx, next) => {
    const sent = headerOf(ctx, headers.traceId) ?? '';
    ctx.state.traceId = isTraceId(sent) ? sent : randomUUID();
    arrived(ctx);
    if (!hasPath(ctx)) {
      ctx.req.url = '/';
      ctx.state.pathless = true;
    }
    ctx.set(securityHeaders);
    ctx.res.setHeader(headers.traceId, ctx.state.traceId);
    if (!isOpen()) ctx.set('Connection', 'close');
    await next();
  };

/** Node keeps the first of several. */
const hostCount = ({ req }: ApiContext): number =>
  req.rawHeaders.filter((name, at) => at % 2 === 0 && name.length === 4 && name.toLowerCase() === 'host')
    .length;

/** Node's own answer to a missing Host header has no body, so the check is ours. Whoever sends two wants to confuse. */
export const requireHost: Step = async (ctx, next) => {
  const hosts = hostCount(ctx);
  if (hosts > 1 || (ctx.req.httpVersion === '1.1' && hosts === 0))
    throw fault('malformed_request', 'An HTTP/1.1 request needs one Host header.');
  await next();
};

/** The HTTP parser lets targets through that have no path, as `a://b`, or that are no URL at all. */
export const requirePath: Step = async (ctx, next) => {
  if (ctx.state.pathless === true) throw fault('malformed_request', 'The target of the request has no path.');
  await next();
};
