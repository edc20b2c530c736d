import Router, { type RouterContext } from '@koa/router';
import { holds, mustHold } from '../../domain/authority';
import { fault } from '../../fault';
import { answer } from '../answer/answering';
import { authenticated, type ApiParts, type ApiState, type Step } from '../api-context';
import { bodyReader } from '../request/request-body';
import { openPageAt } from './open-pages';
import type { Route } from './route';

/** Before a write is refused, the head of its tenant's stream is asked: the permission may have been given since. */
const requirePermission = async (
  state: ApiState,
  { method, permission }: Route,
  { ledger }: ApiParts,
): Promise<void> => {
  const { presented, identity } = authenticated(state);
  if (permission === undefined) return;
  const isEnough = method === 'get' || holds(identity.application, permission);
  const { application } = isEnough ? identity : await ledger.identifyAtHead(presented);
  mustHold(application, permission);
};

/** Declared routes, each with its checks in order. */
export const routing = (routes: readonly Route[], parts: ApiParts): Step => {
  const router = new Router<ApiState>({ sensitive: true });
  const readBody = bodyReader(parts);
  for (const route of routes)
    router[route.method](route.path, async (ctx) => {
      ctx.state.route = route.path;
      await requirePermission(ctx.state, route, parts);
      if (route.body !== undefined) await readBody(ctx, route.body.isOptional);
      await answer(ctx, route, parts);
    });
  return router.routes() as unknown as Step;
};

/** What no route took: there is nothing at that path, or not with this method. */
export const unrouted: Step = async (ctx) => {
  const { path } = ctx.state;
  const all = (ctx as unknown as RouterContext).router.match(ctx.path, ctx.method).path;
  const literal = all.filter((layer) => layer.path === path); // not those that would take its last part for an id
  const matched = literal.length > 0 ? literal : all;
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
