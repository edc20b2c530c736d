import type { Middleware, ParameterizedContext } from 'koa';
import type { Logger } from 'pino';
import type { KeyUses } from '../key-uses/key-uses';
import type { AccessRecord } from '../access/access-record';
import type { Identity, PresentedKey } from '../ledger/identify';
import type { Position } from '../event-log/event-log';
import type { TrustedProxies } from '../limits/trusted-proxies';
import type { HttpProblemCode } from '../problems';
import type { HeaderNames } from '../header-names';
import type { RequestMetrics } from './answer/request-metrics';
import type { TraceParent } from './request/trace-parent';
import type { Tracing } from './request/tracing';
import type { RouteParts } from './routes/route';

/** As a body shows it. */
export interface StartProgress {
  readonly events_done: number;
  readonly events_total: number;
}

/** What the API is built from. */
export interface ApiParts extends RouteParts {
  readonly headers: HeaderNames;
  readonly publicUrl: string;
  readonly bodyLimit: number;
  /** Whose pages may call the API from a browser: `*` for all, empty for none. */
  readonly corsOrigins: readonly string[];
  /** Whether events say which client caused them. */
  readonly recordsClients: boolean;
  /** Of the program. */
  readonly version: string;
  readonly logger: Logger;
  readonly trustedProxies: TrustedProxies;
  /**
   * To be awaited before the first use of `reader`: what it shows is then not older than this. False: that could not be
   * made sure of in time.
   */
  readonly upToDate: () => Promise<boolean>;
  /** False until the read models have reached the head that this process found when it started. */
  readonly isReady: () => boolean;
  /** How far they are until then. */
  readonly startProgress: () => StartProgress;
  /** False as soon as the process is stopping: connections are then not kept alive. */
  readonly isOpen: () => boolean;
  readonly reached: (position: Position, withinMs: number) => Promise<boolean>;
  readonly isParked: (tenantId: string, reached: Position) => Promise<boolean>;
  readonly access: AccessRecord;
  readonly keyUses: KeyUses;
  readonly metrics: RequestMetrics;
  /** Undefined: nobody collects traces. */
  readonly tracing?: Tracing | undefined;
}

/** What the steps of one request know of it. */
export interface ApiState {
  traceId: string;
  /** From W3C Trace Context, if the request is part of a trace. */
  traceContext?: TraceParent;
  /** When the request began to arrive, on the monotonic clock. */
  arrivedMs: number;
  /** When it was here, ISO 8601, and until when it is to be answered, on the monotonic clock. */
  at: string;
  deadline: number;
  /** Without a trailing slash: both are the same. */
  path: string;
  /** What the limits count by. */
  clientAddress: string;
  /** The target of the request has no path; it is treated as `/` from here on. */
  pathless?: true;
  /** The key that came with the request, valid or not, and who it stands for. */
  presented?: PresentedKey;
  identity?: Identity;
  /** The declared path of the route, for the log. */
  route?: string;
  /** The code of the problem that it is answered with. */
  problem?: HttpProblemCode;
  /** The rate limit that refused it. */
  refusedBy?: string;
  /** What the read models show may lack writes that were acknowledged. */
  mayBeStale?: true;
  /** It was written, and the read models do not show it yet. */
  isReadPending?: true;
  /** Why a key was refused, or what went wrong: for the log only. */
  reason?: string;
  error?: unknown;
}

/** Who a request comes from, once its key was accepted. */
export const authenticated = ({ presented, identity }: ApiState) => {
  if (presented === undefined || identity === undefined)
    throw new Error('A route was reached without a key.');
  return { presented, identity };
};

export type ApiContext = ParameterizedContext<ApiState>;
export type Step = Middleware<ApiState>;

/** The value of one header, or undefined. Node joins a repeated one of ours with a comma, which no value of ours has. */
export const headerOf = (ctx: ApiContext, name: string): string | undefined => {
  const value = ctx.req.headers[name.toLowerCase()];
  return Array.isArray(value) ? value.join(', ') : value;
};
