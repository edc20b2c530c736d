import { monotonicMs } from '../../clock';
import { REQUEST, REQUEST_FAILED } from '../../logger';
import type { ApiContext, ApiParts, Step } from '../api-context';

const UNAVAILABLE = 503;

/** One line per request, after its answer is sent or its connection lost. Never a key, never a body. */
export const accessLog = ({ logger }: ApiParts): Step => {
  const tell = (ctx: ApiContext): void => {
    const { traceId, arrivedMs, clientAddress, route, key, reason, error } = ctx.state;
    const line = {
      trace_id: traceId,
      method: ctx.req.method,
      route: route ?? null,
      status: ctx.res.statusCode,
      ms: monotonicMs() - arrivedMs,
      client_address: clientAddress,
      application_id: key?.application.id ?? null,
      key_id: key?.keyId ?? null,
      // What is undefined is left out.
      reason,
      aborted: ctx.res.writableFinished ? undefined : true,
      err: error,
    };
    if (error !== undefined) logger.error(line, REQUEST_FAILED);
    else if (line.status === UNAVAILABLE) logger.warn(line, REQUEST);
    else logger.info(line, REQUEST);
  };

  const tellAtEnd = (ctx: ApiContext): void => {
    if (ctx.res.closed) tell(ctx);
    else ctx.res.on('close', () => tell(ctx)); // it comes once
  };

  return (ctx, next) => {
    if (logger.isLevelEnabled('info')) {
      tellAtEnd(ctx);
      return next();
    }
    return next().then(() => {
      if (ctx.state.error !== undefined || ctx.res.statusCode === UNAVAILABLE) tellAtEnd(ctx);
    });
  };
};
