import { monotonicMs } from '../../async/clock';
import type { ApiContext, ApiDependencies } from '../api-context';
import { observedRequest } from './request-metrics';

/** The messages of access log lines. */
export const REQUEST = 'request';
export const REQUEST_FAILED = 'request failed';

const UNAVAILABLE = 503;

/**
 * Logs each request and adds it to the metrics once its response is sent or its connection lost. Never logs a key or a
 * body.
 */
export const accessLog = ({ logger, metrics }: ApiDependencies): ((ctx: ApiContext) => void) => {
  const log = (ctx: ApiContext): void => {
    const { traceId, arrivedMs, clientAddress, route, identity, reason, error } = ctx.state;
    // Koa's status is 404 until a response is set.
    const status = ctx.res.headersSent ? ctx.res.statusCode : null;
    const line = {
      trace_id: traceId,
      method: ctx.method,
      route: route ?? null,
      status,
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
    metrics.ended(observedRequest(ctx));
    log(ctx);
  };

  return (ctx) => {
    metrics.began();
    if (ctx.res.closed) end(ctx);
    else ctx.res.on('close', () => end(ctx)); // emitted once
  };
};
