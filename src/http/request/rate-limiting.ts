import type { Logger } from 'pino';
import { fault, type Fault } from '../../fault';
import { parseAddress } from '../../limits/address';
import type { LimitExceeded } from '../../limits/rate-limits';
import { originOf } from '../../limits/trusted-proxies';
import { headerOf, type ApiContext, type Step } from '../context';
import type { ApiDependencies } from '../dependencies';

/** `Forwarded` is not read: two headers that say the same thing could contradict each other. */
const FORWARDED_FOR = 'x-forwarded-for';

/** Stands in for the address of a peer that has already disconnected. */
const GONE = 'gone';

const isForwarded = (ctx: ApiContext): boolean =>
  ctx.req.headers[FORWARDED_FOR] !== undefined || ctx.req.headers['forwarded'] !== undefined;

/** The address that requests are counted by: the peer's, or the one that trusted proxies report. */
const clientAddress = ({ settings, monitoring: { logger } }: ApiDependencies) => {
  let warned = false;

  const warn = (peer: string): void => {
    if (warned) return;
    warned = true;
    logger.warn(
      { peer },
      'ignoring a forwarded header from a peer that is not a trusted proxy; if it is your proxy, set TRUSTED_PROXIES (logged once)',
    );
  };

  return (ctx: ApiContext): string => {
    const peer = parseAddress(ctx.req.socket.remoteAddress ?? '');
    if (peer === undefined) return GONE;
    const { address, trusted } = originOf(settings.trustedProxies, peer, headerOf(ctx, FORWARDED_FOR));
    if (!trusted && isForwarded(ctx)) warn(peer.text);
    return address.counted;
  };
};

const rateLimited = ({ policy, retryAfter }: LimitExceeded): Fault =>
  fault(
    'rate_limited',
    `The limit "${policy.name}" is ${policy.limit} requests in ${policy.windowSeconds} seconds. Try again after ${retryAfter} seconds.`,
    { violated_policies: [policy.name], retryAfter, reason: `limit ${policy.name}` },
  );

/** Logs the start of a block. Requests refused during it appear only in the access log. */
const logBlock = (ctx: ApiContext, { policy }: LimitExceeded, logger: Logger): void =>
  logger.warn(
    {
      trace_id: ctx.state.traceId,
      limit: policy.name,
      client_address: ctx.state.clientAddress,
      block_seconds: policy.blockSeconds,
    },
    'a client exceeded a rate limit and is blocked',
  );

/** Counts every request that the parser accepted, so that even refused ones get the rate limit headers. */
export const limitRequests = (dependencies: ApiDependencies): Step => {
  const { limits } = dependencies.stores;
  const addressOf = clientAddress(dependencies);

  return async (ctx, next) => {
    ctx.state.clientAddress = addressOf(ctx);
    const { path, clientAddress: address } = ctx.state;
    const { policyField, stateField, refused } = await limits.count(ctx.method, path, address);
    if (policyField !== undefined) ctx.set('RateLimit-Policy', policyField);
    if (stateField !== undefined) ctx.set('RateLimit', stateField);
    if (refused === undefined) return next();
    if (refused.blockStarted) logBlock(ctx, refused, dependencies.monitoring.logger);
    ctx.state.refusedBy = refused.policy.name;
    throw rateLimited(refused);
  };
};
