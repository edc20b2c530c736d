import { monotonicMs } from '../clock';
import { REQUEST } from '../logger';
import type { ApiContext, ApiParts, Step } from './api-context';

/** One line per request, after its answer is sent or its connection lost. Never a key, never a body. */
export const accessLog = ({ logger }: ApiParts): Step => {
  const tell = (ctx: ApiContext): void => {
    const { traceId, arrivedMs, route, key, reason, error } = ctx.state;
    const line = {
      trace_id: traceId,
      method: ctx.req.method,
      route: route ?? null,
      status: ctx.res.statusCode,
      ms: monotonicMs() - arrivedMs,
      application_id: key?.application.id ?? null,
      // What is undefined is left out.
      reason,
      aborted: ctx.res.writableFinished ? undefined : true,
      err: error,
    };
    if (error === undefined) logger.info(line, REQUEST);
    else logger.error(line, 'request failed');
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
      if (ctx.state.error !== undefined) tellAtEnd(ctx);
    });
  };
};
