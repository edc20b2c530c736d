import type { Middleware, ParameterizedContext } from 'koa';
import type { Logger } from 'pino';
import type { KeyUseRecord } from '../access/key-use-record';
import type { EventSource } from '../audit/event-source';
import type { ServiceIdentity } from '../domain/services';
import type { Position } from '../event-log/event-log';
import type { EvidenceKey } from '../evidence/note';
import type { Identity, PresentedKey } from '../ledger/api-key';
import type { Ledger } from '../ledger/ledger';
import type { KnownServices } from '../ledger/services';
import type { ReportFacts } from '../ingest/report-facts';
import type { RateLimits } from '../limits/rate-limits';
import type { HttpProblemCode } from '../problems';
import type { KnownLiveSet } from '../projecting/live-set';

export interface ApiDependencies {
  readonly settings: ApiSettings;
  readonly ledger: Ledger;
  readonly services: KnownServices;
  readonly reportFacts: ReportFacts;
  readonly readModels: Pick<KnownLiveSet, 'query'> & {
    /** Shows a tenant up to a position. False: not in time, or it is parked, or that failed. It never rejects. */
    readonly show: (tenantId: string, position: Position, withinMs: number) => Promise<boolean>;
  };
  readonly events: EventSource;
  /** Signs checkpoints. */
  readonly evidence: EvidenceKey;
  readonly keyUses: KeyUseRecord;
  readonly limits: RateLimits;
  readonly logger: Logger;
  readonly metrics: RequestMetrics;
  /** The web console. Undefined: it is switched off. */
  readonly portal?: ApiMiddleware | undefined;
}

export interface ApiSettings {
  readonly headers: HeaderNames;
  readonly publicUrl: string;
  /** The origins whose pages may call the API from a browser: `*` for all, empty for none. */
  readonly corsOrigins: readonly string[];
  /** Whether events record the client that caused them. */
  readonly recordsClients: boolean;
  /** How many proxies append to `X-Forwarded-For`. */
  readonly trustedProxies: number;
  readonly version: string;
}

export interface RequestMetrics {
  began(): void;
  /** The response was sent, or the client disconnected. */
  ended(ctx: ApiContext): void;
}

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
  /** What the rate limits count by. */
  clientAddress: string;
  /** The rate limit that refused it. */
  refusedBy?: string;
  /** The key sent with the request, valid or not. */
  presented?: PresentedKey;
  /** The caller, if the key was accepted. */
  identity?: Identity;
  /** The caller, if it is a service. */
  service?: ServiceIdentity;
  /** The declared path of the route, for the log. */
  route?: string;
  /** The tenant is parked in the read models, so what they show of it ends here. */
  completeUntil?: string;
  /** A write that is not visible in the read models yet. */
  isReadPending?: true;
  /** The code of the problem in the response. */
  problem?: HttpProblemCode;
  /** Why a key was refused, or what went wrong: for the log only. */
  reason?: string;
  error?: unknown;
}

export type ApiContext = ParameterizedContext<ApiState>;
export type ApiMiddleware = Middleware<ApiState>;

/** The names of our own headers, from the configured prefix. */
export const headerNames = (prefix: string) => ({
  apiKey: `${prefix}-API-KEY`,
  traceId: `${prefix}-TRACE-ID`,
  idempotencyKey: `${prefix}-IDEMPOTENCY-KEY`,
  readPending: `${prefix}-READ-PENDING`,
  replayed: `${prefix}-IDEMPOTENT-REPLAYED`,
  completeUntil: `${prefix}-COMPLETE-UNTIL`,
  verifyKey: `${prefix}-VERIFY-KEY`,
  tenantId: `${prefix}-TENANT-ID`,
  applicationId: `${prefix}-APPLICATION-ID`,
  keyId: `${prefix}-KEY-ID`,
});

export type HeaderNames = Readonly<ReturnType<typeof headerNames>>;
