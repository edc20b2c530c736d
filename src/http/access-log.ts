import { monotonicMs } from '../clock';
import { REQUEST } from '../logger';
import type { ApiContext, ApiParts, Step } from './api-context';

/** One line per request, after its answer is sent or its connection lost. Never a key, never a body. */
export const accessLog = ({ logger }: ApiParts): Step => {
  const tell = (ctx: ApiContext, began: number): void => {
    const { traceId, route, key, reason, error } = ctx.state;
    const line = {
      trace_id: traceId,
      method: ctx.method,
      route: route ?? null,
      status: ctx.res.statusCode,
      ms: monotonicMs() - began,
      application_id: key?.application.id ?? null,
      ...(reason === undefined ? {} : { reason }),
      ...(ctx.res.writableFinished ? {} : { aborted: true }),
    };
    if (error === undefined) logger.info(line, REQUEST);
    else logger.error({ ...line, err: error }, 'request failed');
  };

  const tellAtEnd = (ctx: ApiContext, began: number): void => {
    if (ctx.res.closed) tell(ctx, began);
    else ctx.res.once('close', () => tell(ctx, began));
  };

  return (ctx, next) => {
    const began = monotonicMs();
    if (logger.isLevelEnabled('info')) {
      tellAtEnd(ctx, began);
      return next();
    }
    return next().then(() => {
      if (ctx.state.error !== undefined) tellAtEnd(ctx, began);
    });
  };
};
