import Koa from 'koa';
import { codeOf } from '../fault';
import { accessLog } from './access-log';
import type { ApiParts, ApiState } from './api-context';
import { arrival, requireHost, requirePath } from './arrival';
import { authentication } from './authentication';
import { clientAddress } from './client-address';
import { errorFrame } from './error-frame';
import { limiting } from './limiting';
import { listLimits } from './limits';
import { listLogEntityTypes, listLogs } from './logs';
import { listPermissions } from './permissions';
import { openApiPage } from './openapi/page';
import { problemPages } from './problem-pages';
import { readOwnUsage } from './reports';
import type { Route } from './route';
import { routing } from './routing';
import { deleteOwnTenant, readOwnTenant, updateOwnTenant } from './tenants';

export const routes: readonly Route[] = [
  listPermissions,
  listLogs,
  listLogEntityTypes,
  readOwnTenant,
  updateOwnTenant,
  deleteOwnTenant,
  readOwnUsage,
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
  app.use(requirePath);
  app.use(requireHost);
  app.use(problemPages);
  app.use(openApiPage({ ...parts, routes }));
  app.use((_, next) => {
    parts.mustBeWhole();
    return next();
  });
  app.use(authentication(parts));
  app.use(routing(routes, parts)); // then, per route: permission, body, idempotency and conditions, handler
  app.on('error', (error) => {
    const level = GONE.has(codeOf(error) ?? '') ? 'info' : 'error';
    parts.logger[level]({ err: error }, 'an answer could not be sent');
  });
  return app;
};
