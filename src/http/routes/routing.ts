import Router, { type RouterContext } from '@koa/router';
import { holds, mustHold } from '../../domain/authority';
import { fault } from '../../fault';
import { answer } from '../response/answering';
import { authenticated, type ApiDependencies, type ApiState, type Step } from '../api-context';
import { bodyReader } from '../request/request-body';
import { openPageAt } from './open-pages';
import type { Route } from './route';

/** Before a refusal, the key is checked as of now: the permission may just have been granted. */
const requirePermission = async (
  state: ApiState,
  { permission }: Route,
  { ledger }: ApiDependencies,
): Promise<void> => {
  const { presented, identity } = authenticated(state);
  if (permission === undefined) return;
  const isHeld = holds(identity.application, permission);
  const { application } = isHeld ? identity : await ledger.identify(presented, 0);
  mustHold(application, permission);
};

/** Registers routes, each with its checks in order. */
export const routing = (routes: readonly Route[], dependencies: ApiDependencies): Step => {
  const router = new Router<ApiState>({ sensitive: true });
  const readBody = bodyReader(dependencies);
  const paths = new Set(routes.map(({ path }) => path));
  for (const route of routes)
    router[route.method](route.path, async (ctx, next) => {
      // A literal path wins over routes that would read its last segment as an id, with any method.
      if (route.path !== ctx.state.path && paths.has(ctx.state.path)) return next();
      ctx.state.route = route.path;
      ctx.state.operation = route.operationId;
      await requirePermission(ctx.state, route, dependencies);
      if (route.body !== undefined) await readBody(ctx, route.body.isOptional);
      await answer(ctx, route, dependencies);
    });
  return router.routes() as unknown as Step;
};

/** Requests that no route handled: nothing is at that path, or not with this method. */
export const unrouted: Step = async (ctx) => {
  const { path } = ctx.state;
  const candidates = (ctx as unknown as RouterContext).router.match(ctx.path, ctx.method).path;
  // Here, too, a literal path wins.
  const literal = candidates.filter((layer) => layer.path === path);
  const matched = literal.length > 0 ? literal : candidates;
  const open = openPageAt(path);
  const methods = open === undefined ? matched.flatMap((layer) => layer.methods) : ['GET', 'HEAD'];
  if (methods.length === 0) throw fault('not_found', `There is nothing at ${path}.`);
  const allow = [...new Set(methods), 'OPTIONS'].toSorted().join(', ');
  if (ctx.method !== 'OPTIONS')
    throw fault('method_not_allowed', `${path} supports ${allow}, not ${ctx.method}.`, { allow });
  ctx.state.route = open?.path ?? String(matched[0]?.path);
  ctx.set('Allow', allow);
  ctx.status = 204;
};
