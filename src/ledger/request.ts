import type { Caller } from '../domain/authority';
import type { Client, Idempotency } from '../domain/events';

/** A request about one tenant. HTTP and the command line build the same. */
export interface Request {
  readonly tenantId: string;
  readonly caller: Caller;
  /** ISO 8601. Its events carry this time, and its key must not have expired by then. */
  readonly at: string;
  /** When the response is due, on the monotonic clock. */
  readonly deadline: number;
  /** Required of callers with a key. The operator may do everything. */
  readonly permission?: string | undefined;
  readonly idempotency?: Idempotency | undefined;
  /** `If-Match`: whether a resource with this entity tag is as the caller saw it. */
  readonly isMet?: ((tag: string) => boolean) | undefined;
  readonly traceId?: string;
  /** Undefined: it is not recorded. */
  readonly client?: Client | undefined;
}

/** An API key as a request presents it, before anything else is known about the caller. */
export interface PresentedKey extends Pick<Request, 'at' | 'deadline'> {
  /** The tenant in the key. */
  readonly tenantId: string;
  readonly digest: string;
  /** Without the log, reads continue for a while from what was known last. Writes are `log_unavailable`. */
  readonly isWrite?: boolean;
  /** The idempotent request that it came with. A repeated deletion is answered although the tenant is deleted. */
  readonly request?: Pick<Idempotency, 'scope' | 'key'> | undefined;
}
