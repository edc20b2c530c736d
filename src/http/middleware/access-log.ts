import { monotonicMs } from '../../async/clock';
import type { ApiContext, ApiDependencies, ApiMiddleware } from '../context';

/** The messages of access log lines. */
export const REQUEST = 'request';
export const REQUEST_FAILED = 'request failed';

const UNAVAILABLE = 503;

/** The status of the response. Undefined: the client disconnected before there was one. Koa's is 404 until it is set. */
export const sentStatus = ({ res }: ApiContext): number | undefined =>
  res.headersSent ? res.statusCode : undefined;

const levelOf = (ctx: ApiContext): 'info' | 'warn' | 'error' => {
  if (ctx.state.error !== undefined) return 'error';
  return sentStatus(ctx) === UNAVAILABLE ? 'warn' : 'info';
};

/** Never has a key or a body. Members that are undefined are omitted. */
const lineOf = (ctx: ApiContext) => {
  const { traceId, arrivedMs, clientAddress, route, identity, reason, error } = ctx.state;
  return {
    trace_id: traceId,
    method: ctx.method,
    route: route ?? null,
    status: sentStatus(ctx) ?? null,
    ms: monotonicMs() - arrivedMs,
    client_address: clientAddress,
    application_id: identity?.application.id ?? null,
    key_id: identity?.keyId ?? null,
    reason,
    aborted: ctx.res.writableFinished ? undefined : true,
    err: error,
  };
};

/** Logs each request and adds it to the metrics once its response is sent or its connection lost. */
export const accessLog = ({ logger, metrics }: ApiDependencies): ApiMiddleware => {
  const end = (ctx: ApiContext): void => {
    metrics.ended(ctx);
    const level = levelOf(ctx);
    if (!logger.isLevelEnabled(level)) return;
    logger[level](lineOf(ctx), level === 'error' ? REQUEST_FAILED : REQUEST);
  };

  return (ctx, next) => {
    metrics.began();
    if (ctx.res.closed) end(ctx);
    else ctx.res.on('close', () => end(ctx)); // emitted once
    return next();
  };
};
