import Router from '@koa/router';
import { keyStanding, mustHold } from '../domain/authority';
import { fault } from '../fault';
import type { Fold } from '../ledger/fold';
import { answering } from './answering';
import { pathOf, type ApiParts, type ApiState, type Step } from './api-context';
import { requestBody } from './request-body';
import type { Route } from './route';

const knownAs =
  (route: Route): Step =>
  async (ctx, next) => {
    ctx.state.route = route.path;
    await next();
  };

type Key = NonNullable<ApiState['key']>;

/** Before a write is refused, the tenant's stream is asked up to its head: the permission may have been given since. */
const mustHoldToWrite = (
  { tenantId, digest }: Key,
  needed: string,
  { at, deadline }: ApiState,
  { ledger }: ApiParts,
): Promise<void> => {
  const mustHoldIn = (fold: Fold): void => {
    const standing = keyStanding(fold.tenant, digest, at);
    if ('application' in standing) mustHold(standing.application, needed);
  };
  return ledger.ask(tenantId, mustHoldIn, deadline);
};

const permission =
  ({ method, permission: needed }: Route, parts: ApiParts): Step =>
  async (ctx, next) => {
    const { key } = ctx.state;
    if (key === undefined) throw new Error('A route was reached without a key.');
    if (needed !== undefined && method === 'get') mustHold(key.application, needed);
    else if (needed !== undefined) await mustHoldToWrite(key, needed, ctx.state, parts);
    await next();
  };

/** Declared routes, each with its checks in order; then what is left is 404 or 405. */
export const routing = (routes: readonly Route[], parts: ApiParts): Step => {
  const router = new Router({ sensitive: true, strict: true });
  for (const route of routes) {
    const body = route.body === undefined ? [] : [requestBody(parts)];
    const steps = [knownAs(route), permission(route, parts), ...body, answering(route, parts)];
    router.register(route.path, [route.method], steps as never[]);
  }
  const dispatch = router.routes() as unknown as Step;

  const allowedAt = (path: string): readonly string[] => {
    const methods = new Set(router.match(path, '').path.flatMap((layer) => layer.methods));
    return methods.size === 0 ? [] : [...methods, 'OPTIONS'].toSorted();
  };

  /** Paths without parameters are looked up, not matched. */
  const known = new Map(routes.map(({ path }) => [path, allowedAt(path)]));

  return async (ctx, next) => {
    const path = pathOf(ctx);
    const allowed = known.get(path) ?? allowedAt(path);
    if (allowed.length === 0) throw fault('not_found', `There is nothing at ${path}.`);
    if (ctx.method === 'OPTIONS') {
      ctx.state.route = path;
      ctx.set('Allow', allowed.join(', '));
      ctx.status = 204;
      return;
    }
    if (!allowed.includes(ctx.method)) {
      const allow = allowed.join(', ');
      throw fault('method_not_allowed', `${path} has ${allow}, not ${ctx.method}.`, { allow });
    }
    // The router takes this path instead of its own reading of the URL.
    Object.assign(ctx, { newRouterPath: path });
    await dispatch(ctx, next);
  };
};
