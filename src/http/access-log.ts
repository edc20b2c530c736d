import { monotonicMs } from '../clock';
import type { ApiParts, Step } from './api-context';

/** One line per request, after its answer is sent or its connection lost. Never a key, never a body. */
export const accessLog =
  ({ logger }: ApiParts): Step =>
  async (ctx, next) => {
    const began = monotonicMs();
    ctx.res.once('close', () => {
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
      if (error === undefined) logger.info(line, 'request');
      else logger.error({ ...line, err: error }, 'request failed');
    });
    await next();
  };
