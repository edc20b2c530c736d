import type { Middleware, ParameterizedContext } from 'koa';
import type { Logger } from 'pino';
import type { KeyUses } from '../key-uses/key-uses';
import type { AccessRecord } from '../access/access-record';
import type { Identity, PresentedKey } from '../ledger/identify';
import type { Position } from '../event-log/event-log';
import type { TrustedProxies } from '../limits/trusted-proxies';
import type { HttpProblemCode } from '../problems';
import type { HeaderNames } from '../configuration';
import type { RequestMetrics } from './response/request-metrics';
import type { TraceParent } from './request/trace-parent';
import type { Tracing } from './request/tracing';
import type { RouteDependencies } from './routes/route';

/** As shown in a response body. Not the number of events: that is nobody's business but the operator's. */
export interface StartProgress {
  readonly percent: number;
}

/** The dependencies of the API. */
export interface ApiDependencies extends RouteDependencies {
  readonly headers: HeaderNames;
  readonly publicUrl: string;
  readonly bodyLimit: number;
  /** The origins whose pages may call the API from a browser: `*` for all, empty for none. */
  readonly corsOrigins: readonly string[];
  /** Whether events record the client that caused them. */
  readonly recordsClients: boolean;
  /** The version of the program. */
  readonly version: string;
  readonly logger: Logger;
  readonly trustedProxies: TrustedProxies;
  /** Await this before the first use of `reader`. False: it may be stale. */
  readonly upToDate: () => Promise<boolean>;
  /** False until the read models have reached the head that this process found when it started. */
  readonly isReady: () => boolean;
  /** The same, after waiting for it until the deadline if this process has just started. */
  readonly whenReady: (deadline: number) => Promise<boolean>;
  /** Their progress until then. */
  readonly startProgress: () => StartProgress;
  /** False once the process is stopping: connections are then no longer kept alive. */
  readonly isOpen: () => boolean;
  readonly reached: (position: Position, withinMs: number) => Promise<boolean>;
  readonly isParked: (tenantId: string, reached: Position) => Promise<boolean>;
  readonly access: AccessRecord;
  readonly keyUses: KeyUses;
  readonly metrics: RequestMetrics;
  /** Undefined: traces are not collected. */
  readonly tracing?: Tracing | undefined;
}

/** The state of one request, shared by the steps. */
export interface ApiState {
  traceId: string;
  /** From W3C Trace Context, if the request is part of a trace. */
  traceContext?: TraceParent;
  /** When the request began to arrive, on the monotonic clock. */
  arrivedMs: number;
  /** When it had arrived with its body, ISO 8601. */
  at: string;
  /** When the response is due, on the monotonic clock. */
  deadline: number;
  /** Without a trailing slash, which makes no difference. */
  path: string;
  /** What the rate limits count by. */
  clientAddress: string;
  /** The target of the request has no path; it is treated as `/` from here on. */
  pathless?: true;
  /** The key sent with the request, valid or not. */
  presented?: PresentedKey;
  /** The caller, if the key was accepted. */
  identity?: Identity;
  /** The declared path of the route, for the log. */
  route?: string;
  /** Its operation id. */
  operation?: string;
  /** The code of the problem in the response. */
  problem?: HttpProblemCode;
  /** The rate limit that refused it. */
  refusedBy?: string;
  /** The read models may lack acknowledged writes. */
  mayBeStale?: true;
  /** A write that is not visible in the read models yet. */
  isReadPending?: true;
  /** Why a key was refused, or what went wrong: for the log only. */
  reason?: string;
  error?: unknown;
}

/** The caller of a request whose key was accepted. */
export const authenticated = ({ presented, identity }: ApiState) => {
  if (presented === undefined || identity === undefined)
    throw new Error('A route was reached without a key.');
  return { presented, identity };
};

export type ApiContext = ParameterizedContext<ApiState>;
export type Step = Middleware<ApiState>;

/** The value of a header. Node joins repeated ones with a comma, which no valid value of ours contains. */
export const headerOf = (ctx: ApiContext, name: string): string | undefined => {
  const value = ctx.req.headers[name.toLowerCase()];
  return Array.isArray(value) ? value.join(', ') : value;
};
