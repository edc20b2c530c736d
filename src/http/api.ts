import Koa from 'koa';
import { codeOf } from '../fault';
import type { ApiState } from './context';
import type { ApiDependencies } from './dependencies';
import { authenticate } from './handle';
import { openApiDocument } from './openapi/document';
import { limitRequests } from './request/rate-limiting';
import { startRequest } from './request/request-start';
import { accessLog } from './response/access-log';
import { crossOrigin, endPreflight } from './response/cross-origin';
import { catchProblems } from './response/problem-response';
import {
  createApplicationKey,
  deleteApplicationKey,
  getApplicationKey,
  listApplicationKeys,
  listApplicationKeyUses,
  regenerateApplicationKey,
} from './routes/application-keys';
import {
  createApplication,
  deleteApplication,
  getApplication,
  getOwnApplication,
  listApplications,
  updateApplication,
} from './routes/applications';
import { getEvent, listEvents } from './routes/events';
import { listLimits } from './routes/limits';
import { countLogs } from './routes/log-counts';
import { listLogEntityTypes, listLogs } from './routes/logs';
import { listPermissions } from './routes/permissions';
import { servePublicPages } from './routes/public-pages';
import { getTenantUsageReport } from './routes/reports';
import type { Route } from './routes/route';
import { routing, unrouted } from './routes/routing';
import { deleteTenant, getTenant, updateTenant } from './routes/tenants';

export const routes: readonly Route[] = [
  listPermissions,
  listLogs,
  listLogEntityTypes,
  countLogs,
  listEvents,
  getEvent,
  getTenant,
  updateTenant,
  deleteTenant,
  getTenantUsageReport,
  listApplications,
  createApplication,
  getOwnApplication, // before the routes that match any id
  getApplication,
  updateApplication,
  deleteApplication,
  regenerateApplicationKey,
  listApplicationKeys,
  createApplicationKey,
  getApplicationKey,
  deleteApplicationKey,
  listApplicationKeyUses,
  listLimits,
];

/** The client left before it had the whole response, sent no valid HTTP, stopped reading, or may no longer read. */
const OF_CLIENT =
  /^(?:ECONNRESET|EPIPE|ERR_STREAM_PREMATURE_CLOSE|ERR_HTTP_REQUEST_TIMEOUT|HPE_.*|stream_cut_off)$/;

/** Every request goes through this middleware from top to bottom. */
export const api = (dependencies: ApiDependencies): Koa<ApiState> => {
  const { settings, monitoring } = dependencies;
  const allowsOrigins = settings.corsOrigins.length > 0;
  const document = () => openApiDocument({ ...settings, routes });

  const app = new Koa<ApiState>({ proxy: settings.trustedProxies > 0, maxIpsCount: settings.trustedProxies });
  app.use(startRequest(dependencies));
  app.use(accessLog(monitoring));
  if (allowsOrigins) app.use(crossOrigin(settings));
  app.use(catchProblems(dependencies));
  app.use(limitRequests(dependencies)); // 429
  if (allowsOrigins) app.use(endPreflight);
  app.use(servePublicPages(document));
  if (dependencies.portal !== undefined) app.use(dependencies.portal);
  app.use(authenticate(dependencies)); // 401
  app.use(routing(routes, dependencies)); // 403, 413, 415, 400, 412: see `handle`
  app.use(unrouted); // 404, 405

  app.on('error', (error) => {
    const code = codeOf(error) ?? '';
    // Without the error itself: Node puts what was sent into it, and that may contain a key.
    if (OF_CLIENT.test(code)) monitoring.logger.info({ code }, 'response could not be sent');
    else monitoring.logger.error({ err: error }, 'response could not be sent');
  });
  return app;
};
