import Router, { type RouterContext } from '@koa/router';
import Koa from 'koa';
import { METHODS } from 'node:http';
import { codeOf, fault } from '../fault';
import type { ApiContext, ApiDependencies, ApiMiddleware, ApiState } from './context';
import { routeDocs } from './docs';
import { catchProblems, crossOrigin, limitRequests, startRequest } from './middleware';
import { openApiDocument } from './openapi/document';
import type { NamedRoute, Route } from './route';
import * as applicationKeys from './routes/application-keys';
import * as applications from './routes/applications';
import * as events from './routes/events';
import * as evidence from './routes/evidence';
import { reportFacts } from './routes/facts';
import { listLimits } from './routes/limits';
import { countLogs } from './routes/log-counts';
import { exportLogs } from './routes/log-csv';
import { listLogEntityTypes, listLogs } from './routes/logs';
import { listPermissions } from './routes/permissions';
import { getTenantUsageReport } from './routes/reports';
import * as tenants from './routes/tenants';
import { checkKey, verifyKey } from './routes/verify-key';
import { runRoute } from './run-route';

/** The routes by their tag in the OpenAPI document. Their names are the operation ids. */
const routesByTag: Readonly<Record<string, Readonly<Record<string, Route>>>> = {
  Permissions: { listPermissions },
  Logs: { listLogs, exportLogs, listLogEntityTypes, countLogs },
  Events: { ...events },
  Evidence: { ...evidence },
  Tenants: { ...tenants },
  Reports: { getTenantUsageReport },
  Applications: { ...applications, ...applicationKeys },
  Limits: { listLimits },
  Services: { reportFacts, verifyKey, checkKey },
};

export const routes: readonly NamedRoute[] = Object.entries(routesByTag).flatMap(([tag, named]) =>
  Object.entries(named).map(([operationId, route]) => ({ ...route, tag, operationId })),
);

/** The layers of the router that match a path. */
const matchedBy = (ctx: ApiContext): NonNullable<RouterContext['matched']> =>
  (ctx as unknown as RouterContext).matched ?? [];

/** `/applications/key` is not the Application with the id `key`, whatever the method. */
const literalPath = (ctx: ApiContext) => matchedBy(ctx).filter(({ path }) => path === ctx.state.path);

const routerOf = (dependencies: ApiDependencies): Router<ApiState> => {
  const router = new Router<ApiState>({ sensitive: true, methods: METHODS });
  for (const route of routes) {
    const run = runRoute(route, dependencies);
    router[route.method](route.path, (ctx, next) =>
      ctx.state.path === route.path || literalPath(ctx).length === 0 ? run(ctx, next) : next(),
    );
  }
  routeDocs(router, () => openApiDocument(routes, dependencies.settings));
  return router;
};

/** Requests that no route answers: there is nothing at that path, or not with this method. */
const unrouted = (router: Router<ApiState>): ApiMiddleware => {
  const allowedMethods = router.allowedMethods() as unknown as ApiMiddleware;
  return async (ctx) => {
    const { path } = ctx.state;
    const literal = literalPath(ctx);
    if (literal.length > 0) ctx['matched'] = literal;
    await allowedMethods(ctx, async () => undefined);
    const methods = ctx.res.getHeader('Allow');
    if (typeof methods !== 'string') throw fault('not_found', `There is nothing at ${path}.`);
    const allow = [...methods.split(', '), 'OPTIONS'].toSorted().join(', ');
    ctx.state.route = String(matchedBy(ctx)[0]?.path);
    if (ctx.method !== 'OPTIONS')
      throw fault('method_not_allowed', `${path} supports ${allow}, not ${ctx.method}.`, { allow });
    ctx.set('Allow', allow);
    ctx.status = 204;
  };
};

/** The client left before it had the whole response, sent no valid HTTP, stopped reading, or may no longer read. */
const OF_CLIENT =
  /^(?:ECONNRESET|EPIPE|ERR_STREAM_PREMATURE_CLOSE|ERR_HTTP_REQUEST_TIMEOUT|HPE_.*|stream_cut_off)$/;

/** Every request goes through this middleware from top to bottom. */
export const api = (dependencies: ApiDependencies): Koa<ApiState> => {
  const { settings, logger, portal } = dependencies;
  const router = routerOf(dependencies);
  const limit = limitRequests(dependencies);

  const app = new Koa<ApiState>({ proxy: settings.trustedProxies > 0, maxIpsCount: settings.trustedProxies });
  app.use(startRequest(dependencies));
  app.use(catchProblems(dependencies));
  if (settings.corsOrigins.length > 0) app.use(crossOrigin(settings, limit));
  app.use(limit); // 429
  if (portal !== undefined) app.use(portal);
  app.use(router.routes() as unknown as ApiMiddleware); // 401, 403, 413, 415, 400, 412: see `runRoute`
  app.use(unrouted(router)); // 404, 405

  app.on('error', (error) => {
    const code = codeOf(error) ?? '';
    // Without the error itself: Node puts what was sent into it, and that may contain a key.
    if (OF_CLIENT.test(code)) logger.info({ code }, 'response could not be sent');
    else logger.error({ err: error }, 'response could not be sent');
  });
  return app;
};
