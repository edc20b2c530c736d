import type { Middleware, ParameterizedContext } from 'koa';
import type { Identity } from '../ledger/identify';
import type { PresentedKey } from '../ledger/request';
import type { HttpProblemCode } from '../problems';

/** What the middleware learns about one request. Handlers, access log and metrics read it. */
export interface ApiState {
  traceId: string;
  /** When its headers were complete, on the monotonic clock. */
  arrivedMs: number;
  /** When it had arrived with its body, ISO 8601. */
  at: string;
  /** When the response is due, on the monotonic clock. */
  deadline: number;
  /** Without a trailing slash, which makes no difference. */
  path: string;
  /** A page of an allowed origin asks whether it may send its request. */
  isPreflight?: boolean;
  /** What the rate limits count by. */
  clientAddress: string;
  /** The rate limit that refused it. */
  refusedBy?: string;
  /** The key sent with the request, valid or not. */
  presented?: PresentedKey;
  /** The caller, if the key was accepted. */
  identity?: Identity;
  /** The declared path of the route, for the log. */
  route?: string;
  /** Its operation id. */
  operation?: string;
  /** When the read models were looked at, on the monotonic clock. */
  lookedMs?: number;
  /** The tenant is parked, so the response only includes what was recorded before. */
  isIncomplete?: true;
  /** A write that is not visible in the read models yet. */
  isReadPending?: true;
  /** The code of the problem in the response. */
  problem?: HttpProblemCode;
  /** Why a key was refused, or what went wrong: for the log only. */
  reason?: string;
  error?: unknown;
}

export type ApiContext = ParameterizedContext<ApiState>;
export type Step = Middleware<ApiState>;

/** The caller of a request whose key was accepted. */
export const authenticated = ({ presented, identity }: ApiState) => {
  if (presented === undefined || identity === undefined)
    throw new Error('A route was reached without a key.');
  return { presented, identity };
};

/** The value of a header. Node joins repeated ones with a comma, which no valid value of ours contains. */
export const headerOf = (ctx: ApiContext, name: string): string | undefined =>
  ctx.req.headers[name.toLowerCase()] as string | undefined; // a list only for `Set-Cookie`
