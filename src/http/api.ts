import Koa from 'koa';
import { codeOf } from '../fault';
import { accessLog } from './response/access-log';
import { compress } from './response/compression';
import { crossOrigin } from './response/cross-origin';
import { answerProblem } from './response/problem-response';
import type { ApiContext, ApiDependencies, ApiState } from './api-context';
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
import { servePublicPages } from './routes/open-pages';
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
export const api = (dependencies: ApiDependencies): Koa<ApiState> => {
  const logRequest = accessLog(dependencies);
  const setClientAddress = clientAddress(dependencies);
  const allowOrigin = crossOrigin(dependencies);

  const refuse = async (ctx: ApiContext, thrown: unknown): Promise<void> => {
    const error = await finalError(ctx, thrown, dependencies);
    if (codeOf(error) !== 'key_refused') countUse(ctx.state, ctx.state.at, 'failed', dependencies);
    answerProblem(ctx, error, dependencies);
  };

  const app = new Koa<ApiState>();
  if (dependencies.tracing !== undefined) app.use(traced(dependencies.tracing));

  app.use(async (ctx, next) => {
    arrive(ctx, dependencies);
    logRequest(ctx);
    const isPreflight = await allowOrigin(ctx);
    try {
      setClientAddress(ctx);
      await countRequest(ctx, dependencies);
      requireTarget(ctx);
      if (!isPreflight) await next();
      const { at, operation = ctx.method.toLowerCase() } = ctx.state;
      countUse(ctx.state, at, { operation }, dependencies);
    } catch (thrown) {
      await refuse(ctx, thrown).catch((error: unknown) => answerProblem(ctx, error, dependencies));
    }
    await compress(ctx);
  });
  app.use(
    servePublicPages({ ...dependencies, document: () => openApiDocument({ ...dependencies, routes }) }),
  );
  app.use(async (ctx, next) => {
    await authenticate(ctx, dependencies);
    await next();
  });
  app.use(routing(routes, dependencies)); // per route: permission, body, idempotency and conditions, handler
  app.use(unrouted);

  app.on('error', (error) => {
    const level = CLIENT_GONE.has(codeOf(error) ?? '') ? 'info' : 'error';
    dependencies.logger[level]({ err: error }, 'an answer could not be sent');
  });
  return app;
};
