import { monotonicMs } from '../../async/clock';
import type { ApiContext, Step } from '../context';
import type { Monitoring } from '../dependencies';

/** The messages of access log lines. */
export const REQUEST = 'request';
export const REQUEST_FAILED = 'request failed';

const UNAVAILABLE = 503;

/** The status of the response. Undefined: the client disconnected before there was one. Koa's is 404 until it is set. */
export const sentStatus = ({ res }: ApiContext): number | undefined =>
  res.headersSent ? res.statusCode : undefined;

/**
 * Logs each request and adds it to the metrics once its response is sent or its connection lost. Never logs a key or a
 * body.
 */
export const accessLog = ({ logger, metrics }: Pick<Monitoring, 'logger' | 'metrics'>): Step => {
  const log = (ctx: ApiContext): void => {
    const { traceId, arrivedMs, clientAddress, route, identity, reason, error } = ctx.state;
    const status = sentStatus(ctx);
    const line = {
      trace_id: traceId,
      method: ctx.method,
      route: route ?? null,
      status: status ?? null,
      ms: monotonicMs() - arrivedMs,
      client_address: clientAddress,
      application_id: identity?.application.id ?? null,
      key_id: identity?.keyId ?? null,
      // Omitted if undefined.
      reason,
      aborted: ctx.res.writableFinished ? undefined : true,
      err: error,
    };
    if (error !== undefined) logger.error(line, REQUEST_FAILED);
    else if (status === UNAVAILABLE) logger.warn(line, REQUEST);
    else logger.info(line, REQUEST);
  };

  const end = (ctx: ApiContext): void => {
    metrics.ended(ctx);
    log(ctx);
  };

  return (ctx, next) => {
    metrics.began();
    if (ctx.res.closed) end(ctx);
    else ctx.res.on('close', () => end(ctx)); // emitted once
    return next();
  };
};
