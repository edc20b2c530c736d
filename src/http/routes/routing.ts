import Router, { type RouterContext } from '@koa/router';
import { fault } from '../../fault';
import type { ApiContext, ApiState, Step } from '../context';
import type { ApiDependencies } from '../dependencies';
import { handle } from '../handle';
import { bodyReader } from '../request/request-body';
import type { Route } from './route';

/** Finds the route of a request. */
export const routing = (routes: readonly Route[], dependencies: ApiDependencies): Step => {
  const router = new Router<ApiState>({ sensitive: true });
  const readBody = bodyReader();
  const paths = new Set(routes.map(({ path }) => path));
  for (const route of routes)
    router[route.method](route.path, (ctx, next) =>
      // A literal path wins over routes that would read its last segment as an id, with any method.
      route.path !== ctx.state.path && paths.has(ctx.state.path)
        ? next()
        : handle(ctx, route, readBody, dependencies),
    );
  return router.routes() as unknown as Step;
};

/** Answers OPTIONS, and refuses methods that a path does not support. */
export const answerOtherMethod = (ctx: ApiContext, methods: readonly string[]): void => {
  const allow = [...new Set(methods), 'OPTIONS'].toSorted().join(', ');
  if (ctx.method !== 'OPTIONS')
    throw fault('method_not_allowed', `${ctx.state.path} supports ${allow}, not ${ctx.method}.`, { allow });
  ctx.set('Allow', allow);
  ctx.status = 204;
};

/** Requests that no route handled: nothing is at that path, or not with this method. */
export const unrouted: Step = async (ctx) => {
  const { path } = ctx.state;
  const candidates = (ctx as unknown as RouterContext).router.match(ctx.path, ctx.method).path;
  // Here, too, a literal path wins.
  const literal = candidates.filter((layer) => layer.path === path);
  const matched = literal.length > 0 ? literal : candidates;
  if (matched.length === 0) throw fault('not_found', `There is nothing at ${path}.`);
  answerOtherMethod(
    ctx,
    matched.flatMap((layer) => layer.methods),
  );
  ctx.state.route = String(matched[0]?.path);
};
