import { fault, type Fault } from '../fault';
import type { Refused } from '../limits/rate-limits';
import { pathOf, type ApiContext, type ApiParts, type Step } from './api-context';

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

/** Counts every request that is one, also those that are refused further in: their answers carry the fields, too. */
export const limiting =
  (parts: ApiParts): Step =>
  async (ctx, next) => {
    const { clientAddress } = ctx.state;
    const counted = await parts.limits.count(ctx.req.method ?? '', pathOf(ctx), clientAddress);
    if (counted.policyField !== undefined) ctx.res.setHeader('RateLimit-Policy', counted.policyField);
    if (counted.stateField !== undefined) ctx.res.setHeader('RateLimit', counted.stateField);
    const { refused } = counted;
    if (refused?.blockStarted === true) tell(ctx, refused, parts);
    if (refused !== undefined) throw limited(refused);
    await next();
  };
