import Koa from 'koa';
import { codeOf } from '../fault';
import { accessLog } from './answer/access-log';
import type { ApiParts, ApiState } from './api-context';
import { arrival, requireTarget } from './request/arrival';
import { authentication } from './request/authentication';
import { clientAddress } from './request/client-address';
import { errorFrame } from './answer/error-frame';
import { limiting } from './request/limiting';
import { listLimits } from './routes/limits';
import { listLogEntityTypes, listLogs } from './routes/logs';
import { listPermissions } from './routes/permissions';
import { openApiPage } from './openapi/page';
import { problemPages } from './answer/problem-pages';
import { getOwnUsageReport } from './routes/reports';
import type { Route } from './routes/route';
import { routing, unrouted } from './routes/routing';
import { deleteOwnTenant, getOwnTenant, updateOwnTenant } from './routes/tenants';

export const routes: readonly Route[] = [
  listPermissions,
  listLogs,
  listLogEntityTypes,
  getOwnTenant,
  updateOwnTenant,
  deleteOwnTenant,
  getOwnUsageReport,
  listLimits,
];

/** The client went away while it was answered. */
const GONE = new Set(['ECONNRESET', 'EPIPE']);

/** Every request goes through these steps from top to bottom. */
export const api = (parts: ApiParts): Koa<ApiState> => {
  const app = new Koa<ApiState>();
  app.use(arrival(parts));
  app.use(accessLog(parts));
  app.use(errorFrame(parts));
  app.use(clientAddress(parts));
  app.use(limiting(parts));
  app.use(requireTarget);
  app.use(problemPages);
  app.use(openApiPage({ ...parts, routes }));
  app.use(async (_, next) => {
    parts.mustBeWhole();
    await next();
  });
  app.use(authentication(parts));
  app.use(routing(routes, parts)); // per route: permission, body, idempotency and conditions, handler
  app.use(unrouted);
  app.on('error', (error) => {
    const level = GONE.has(codeOf(error) ?? '') ? 'info' : 'error';
    parts.logger[level]({ err: error }, 'an answer could not be sent');
  });
  return app;
};
