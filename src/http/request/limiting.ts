import { fault, type Fault } from '../../fault';
import type { LimitExceeded } from '../../limits/rate-limits';
import type { ApiContext, ApiDependencies } from '../api-context';

const rateLimited = ({ policy, retryAfter }: LimitExceeded): Fault =>
  fault(
    'rate_limited',
    `The limit "${policy.name}" is ${policy.limit} requests in ${policy.windowSeconds} seconds. Try again after ${retryAfter} seconds.`,
    { violated_policies: [policy.name], retryAfter, reason: `limit ${policy.name}` },
  );

/** Logs the start of a block. Requests refused during it appear only in the access log. */
const logBlock = (ctx: ApiContext, { policy }: LimitExceeded, { logger }: ApiDependencies): void =>
  logger.warn(
    {
      trace_id: ctx.state.traceId,
      limit: policy.name,
      client_address: ctx.state.clientAddress,
      block_seconds: policy.blockSeconds,
    },
    'a client passed a rate limit and is blocked',
  );

/** Counts every request that the parser accepted, so that even refused ones get the rate limit headers. */
export const countRequest = async (ctx: ApiContext, dependencies: ApiDependencies): Promise<void> => {
  const { path, clientAddress } = ctx.state;
  const { policyField, stateField, refused } = await dependencies.limits.count(
    ctx.method,
    path,
    clientAddress,
  );
  if (policyField !== undefined) ctx.set('RateLimit-Policy', policyField);
  if (stateField !== undefined) ctx.set('RateLimit', stateField);
  if (refused?.blockStarted === true) logBlock(ctx, refused, dependencies);
  if (refused === undefined) return;
  ctx.state.refusedBy = refused.policy.name;
  throw rateLimited(refused);
};
