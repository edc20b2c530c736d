import Router from '@koa/router';
import { holds, mustHold } from '../../domain/authority';
import { fault } from '../../fault';
import { answering } from '../answer/answering';
import type { ApiParts, ApiState, Step } from '../api-context';
import { requestBody } from '../request/request-body';
import type { Route } from './route';

const knownAs =
  (route: Route): Step =>
  (ctx, next) => {
    ctx.state.route = route.path;
    return next();
  };

type Key = NonNullable<ApiState['key']>;

/** Before a write is refused, the head of the log is looked at: the permission may have been given since. */
const mustHoldToWrite = async (
  { tenantId, digest, application }: Key,
  needed: string,
  { at, deadline }: ApiState,
  { keys }: ApiParts,
): Promise<void> => {
  if (holds(application, needed)) return;
  const standing = await keys.atHead({ tenantId, digest, at, deadline });
  if ('application' in standing) mustHold(standing.application, needed);
};

const permission =
  ({ method, permission: needed }: Route, parts: ApiParts): Step =>
  (ctx, next) => {
    const { key } = ctx.state;
    if (key === undefined) throw new Error('A route was reached without a key.');
    if (needed === undefined) return next();
    if (method !== 'get') return mustHoldToWrite(key, needed, ctx.state, parts).then(next);
    mustHold(key.application, needed);
    return next();
  };

/** What there is at a path: its methods, and what a request with each of them goes through. */
interface Place {
  readonly allowed: readonly string[];
  readonly steps: ReadonlyMap<string, Step>;
}

const inOrder = (steps: readonly Step[]): Step =>
  steps.reduceRight<Step>(
    (rest, step) => (ctx, next) => step(ctx, () => rest(ctx, next)),
    (_, next) => next(),
  );

/** Declared routes, each with its checks in order; then what is left is 404 or 405. */
export const routing = (routes: readonly Route[], parts: ApiParts): Step => {
  const router = new Router({ sensitive: true, strict: true });
  for (const route of routes) {
    const body = route.body === undefined ? [] : [requestBody(parts)];
    const steps = [knownAs(route), permission(route, parts), ...body, answering(route, parts)];
    router.register(route.path, [route.method], steps as never[]);
  }

  const allowedAt = (path: string): readonly string[] => {
    const methods = new Set(router.match(path, '').path.flatMap((layer) => layer.methods));
    return methods.size === 0 ? [] : [...methods, 'OPTIONS'].toSorted();
  };

  const stepsAt = (path: string, method: string): Step =>
    inOrder(router.match(path, method).pathAndMethod.flatMap(({ stack }) => stack as unknown as Step[]));

  /** Paths without parameters are matched once, not at every request. */
  const placeAt = (path: string): Place => {
    const allowed = allowedAt(path);
    return { allowed, steps: new Map(allowed.map((method) => [method, stepsAt(path, method)])) };
  };
  const known = new Map(routes.map(({ path }) => [path, placeAt(path)]));

  return (ctx, next) => {
    const { path } = ctx.state;
    const { allowed, steps } = known.get(path) ?? placeAt(path);
    if (allowed.length === 0) throw fault('not_found', `There is nothing at ${path}.`);
    if (ctx.method === 'OPTIONS') {
      ctx.state.route = path;
      ctx.set('Allow', allowed.join(', '));
      ctx.status = 204;
      return;
    }
    const going = steps.get(ctx.method);
    if (going === undefined) {
      const allow = allowed.join(', ');
      throw fault('method_not_allowed', `${path} has ${allow}, not ${ctx.method}.`, { allow });
    }
    return going(ctx, next);
  };
};
