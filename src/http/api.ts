import Koa from 'koa';
import { codeOf } from '../fault';
import { accessLog } from './answer/access-log';
import { compress } from './answer/compression';
import { crossOrigin } from './answer/cross-origin';
import { answerProblem } from './answer/problem-answer';
import type { ApiContext, ApiParts, ApiState } from './api-context';
import { openApiDocument } from './openapi/document';
import { arrive, requireTarget } from './request/arrival';
import { authenticate, finalError } from './request/authentication';
import { clientAddress } from './request/client-address';
import { countUse } from './request/key-use';
import { countRequest } from './request/limiting';
import {
  removeKey,
  getKey,
  createKey,
  listKeyUses,
  listKeys,
  regenerateKeys,
} from './routes/application-keys';
import {
  createNewApplication,
  removeApplication,
  getApplication,
  getOwnApplication,
  listApplications,
  changeApplication,
} from './routes/applications';
import { traced } from './request/tracing';
import { getEvent, listEvents } from './routes/events';
import { listLimits } from './routes/limits';
import { listLogEntityTypes, listLogs } from './routes/logs';
import { listPermissions } from './routes/permissions';
import { serveOpenPages } from './routes/open-pages';
import { getOwnUsageReport } from './routes/reports';
import type { Route } from './routes/route';
import { routing, unrouted } from './routes/routing';
import { deleteOwnTenant, getOwnTenant, updateOwnTenant } from './routes/tenants';

export const routes: readonly Route[] = [
  listPermissions,
  listLogs,
  listLogEntityTypes,
  listEvents,
  getEvent,
  getOwnTenant,
  updateOwnTenant,
  deleteOwnTenant,
  getOwnUsageReport,
  listApplications,
  createNewApplication,
  getOwnApplication, // before the routes that match any id
  getApplication,
  changeApplication,
  removeApplication,
  regenerateKeys,
  listKeys,
  createKey,
  getKey,
  removeKey,
  listKeyUses,
  listLimits,
];

/** The client disconnected before it had the whole response, or stopped reading it. */
const CLIENT_GONE = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'reader_stalled']);

/** Every request goes through these steps from top to bottom. */
export const api = (parts: ApiParts): Koa<ApiState> => {
  const logRequest = accessLog(parts);
  const setClientAddress = clientAddress(parts);
  const allowOrigin = crossOrigin(parts);

  const refuse = async (ctx: ApiContext, thrown: unknown): Promise<void> => {
    const error = await finalError(ctx, thrown, parts);
    if (codeOf(error) !== 'key_refused') countUse(ctx.state, ctx.state.at, 'failed', parts);
    answerProblem(ctx, error, parts);
  };

  const app = new Koa<ApiState>();
  if (parts.tracing !== undefined) app.use(traced(parts.tracing));

  app.use(async (ctx, next) => {
    arrive(ctx, parts);
    logRequest(ctx);
    const isPreflight = await allowOrigin(ctx);
    try {
      setClientAddress(ctx);
      await countRequest(ctx, parts);
      requireTarget(ctx);
      if (!isPreflight) await next();
      const { at, operation = ctx.method.toLowerCase() } = ctx.state;
      countUse(ctx.state, at, { operation }, parts);
    } catch (thrown) {
      await refuse(ctx, thrown).catch((error: unknown) => answerProblem(ctx, error, parts));
    }
    await compress(ctx);
  });
  app.use(serveOpenPages({ ...parts, document: () => openApiDocument({ ...parts, routes }) }));
  app.use(async (ctx, next) => {
    await authenticate(ctx, parts);
    await next();
  });
  app.use(routing(routes, parts)); // per route: permission, body, idempotency and conditions, handler
  app.use(unrouted);

  app.on('error', (error) => {
    const level = CLIENT_GONE.has(codeOf(error) ?? '') ? 'info' : 'error';
    parts.logger[level]({ err: error }, 'an answer could not be sent');
  });
  return app;
};
