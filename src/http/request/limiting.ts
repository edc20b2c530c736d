import { fault, type Fault } from '../../fault';
import type { Counted, Refused } from '../../limits/rate-limits';
import type { ApiContext, ApiParts, Step } from '../api-context';
import { setField } from '../answer/fields';

const limited = ({ policy, retryAfter }: Refused): Fault =>
  fault(
    'rate_limited',
    `The limit "${policy.name}" is ${policy.limit} requests in ${policy.windowSeconds} seconds. Try again after ${retryAfter} seconds.`,
    { violated_policies: [policy.name], retryAfter, reason: `limit ${policy.name}` },
  );

/** One line when a block begins; what is refused during it has its access log lines only. */
const tell = (ctx: ApiContext, { policy }: Refused, { logger }: ApiParts): void =>
  logger.warn(
    {
      trace_id: ctx.state.traceId,
      limit: policy.name,
      client_address: ctx.state.clientAddress,
      block_seconds: policy.blockSeconds,
    },
    'a client passed a rate limit and is blocked',
  );

/** Every answer tells what was counted, also those that are refused further in. */
const mustBeWithin = (
  ctx: ApiContext,
  { policyField, stateField, refused }: Counted,
  parts: ApiParts,
): void => {
  if (policyField !== undefined) setField(ctx, 'RateLimit-Policy', policyField);
  if (stateField !== undefined) setField(ctx, 'RateLimit', stateField);
  if (refused?.blockStarted === true) tell(ctx, refused, parts);
  if (refused !== undefined) throw limited(refused);
};

/** Counts every request that is one. */
export const limiting =
  (parts: ApiParts): Step =>
  (ctx, next) => {
    const { path, clientAddress } = ctx.state;
    const counted = parts.limits.count(ctx.req.method ?? '', path, clientAddress);
    if (counted instanceof Promise)
      return counted.then((late) => {
        mustBeWithin(ctx, late, parts);
        return next();
      });
    mustBeWithin(ctx, counted, parts);
    return next();
  };
