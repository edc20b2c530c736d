import { isIPv4, isIPv6 } from 'node:net';
import type { Logger } from 'pino';
import { fault, type Fault } from '../../fault';
import type { LimitExceeded } from '../../limits/rate-limits';
import type { ApiContext, ApiDependencies, ApiMiddleware } from '../context';

/** Stands in for the address of a peer that has already disconnected. */
const GONE = 'gone';

/** Requests of an IPv6 address are counted by its /64, which a single customer typically has. */
const networkOf = (ipv6: string): string => {
  const short = new URL(`http://[${ipv6}]`).hostname.slice(1, -1);
  const zeros = 8 - short.split(':').filter(Boolean).length;
  const groups = short
    .replace('::', `:${'0:'.repeat(zeros)}`)
    .split(':')
    .filter(Boolean);
  return `${groups.slice(0, 4).join(':')}::/64`;
};

/** The address as it is counted. An IPv4-mapped one is the IPv4 address; a zone names an interface of this machine. */
const countedAs = (address: string): string | undefined => {
  const bare = address.replace(/%.*$/, '').replace(/^::ffff:(?=[0-9.]+$)/i, '');
  if (isIPv4(bare)) return bare;
  return isIPv6(bare) ? networkOf(bare) : undefined;
};

/** The address that the outermost trusted proxy saw; without one, or if it wrote no address, that of the connection. */
const clientAddress = (ctx: ApiContext): string =>
  countedAs(ctx.ip) ?? countedAs(ctx.req.socket.remoteAddress ?? '') ?? GONE;

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
export const limitRequests =
  ({ limits, logger }: ApiDependencies): ApiMiddleware =>
  async (ctx, next) => {
    ctx.state.clientAddress = clientAddress(ctx);
    const { path, clientAddress: address } = ctx.state;
    const { fields, refused } = await limits.count(ctx.method, path, address);
    if (fields !== undefined) ctx.set(fields);
    if (refused === undefined) return next();
    if (refused.blockStarted) logBlock(ctx, refused, logger);
    ctx.state.refusedBy = refused.policy.name;
    throw rateLimited(refused);
  };
