import { keyStanding, mustHold } from '../domain/authority';
import { fault } from '../fault';
import type { Fold } from '../ledger/fold';
import { answering } from './answering';
import { pathOf, type ApiParts, type ApiState, type Step } from './api-context';
import { requestBody } from './request-body';
import type { Route } from './route';

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

const mustBePermitted = async (
  { method, permission: needed }: Route,
  state: ApiState,
  parts: ApiParts,
): Promise<void> => {
  const { key } = state;
  if (key === undefined) throw new Error('A route was reached without a key.');
  if (needed === undefined) return;
  if (method === 'get') mustHold(key.application, needed);
  else await mustHoldToWrite(key, needed, state, parts);
};

/** What every route goes through: permission, body, then its handler. */
const going = (route: Route, parts: ApiParts): Step => {
  const answer = answering(route, parts);
  const parse = route.body === undefined ? undefined : requestBody(parts);
  return async (ctx, next) => {
    ctx.state.route = route.path;
    await mustBePermitted(route, ctx.state, parts);
    await (parse === undefined ? answer(ctx, next) : parse(ctx, () => answer(ctx, next)));
  };
};

/** What there is at one path. */
interface Place {
  readonly allow: string;
  readonly steps: ReadonlyMap<string, Step>;
}

/** HEAD is a GET whose body is not sent. */
const methodsOf = ({ method }: Route): readonly string[] =>
  method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()];

const placesOf = (routes: readonly Route[], parts: ApiParts): ReadonlyMap<string, Place> => {
  const paths = [...new Set(routes.map(({ path }) => path))];
  return new Map(
    paths.map((path) => {
      const here = routes.filter((route) => route.path === path);
      const steps = new Map(
        here.flatMap((route) => {
          const step = going(route, parts);
          return methodsOf(route).map((method) => [method, step] as const);
        }),
      );
      return [path, { allow: [...steps.keys(), 'OPTIONS'].toSorted().join(', '), steps }];
    }),
  );
};

/** Declared routes; what is left is 404 or 405. No path of ours has parameters, so a map finds them. */
export const routing = (routes: readonly Route[], parts: ApiParts): Step => {
  const places = placesOf(routes, parts);

  return async (ctx, next) => {
    const path = pathOf(ctx);
    const place = places.get(path);
    if (place === undefined) throw fault('not_found', `There is nothing at ${path}.`);
    const { allow, steps } = place;
    const step = steps.get(ctx.method);
    if (step !== undefined) return step(ctx, next);
    if (ctx.method !== 'OPTIONS')
      throw fault('method_not_allowed', `${path} has ${allow}, not ${ctx.method}.`, { allow });
    ctx.state.route = path;
    ctx.set('Allow', allow);
    ctx.status = 204;
  };
};
