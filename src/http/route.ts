import type { Caller, HeldBy } from '../domain/authority';
import type { Idempotency } from '../domain/events';
import type { ActiveTenant } from '../domain/tenant';
import type { Position } from '../event-log/event-log';
import type { Ledger } from '../ledger/ledger';
import type { RateLimits } from '../limits/rate-limits';
import type { Reader } from '../../projections/projector';
import type { Cursors } from './cursor';

/** A route is a declaration; everything that all routes share happens around it. */
export interface Route<Body = unknown> {
  readonly method: 'get' | 'put' | 'post' | 'delete';
  readonly path: string;
  /** Left out: any good key will do. */
  readonly permission?: string;
  /** Left out: the route takes no body and ignores one. */
  readonly body?: BodyCheck<Body>;
  /** The projection that it reads: if the tenant is parked there, the answer says until when it is complete. */
  readonly from?: string;
  readonly handle: (asked: Asked<Body>, parts: RouteParts) => Promise<Answer>;
}

/** Checks a parsed body and gives it its type, or throws `validation_failed`. */
export type BodyCheck<Body> = (parsed: unknown) => Body;

export const route = <Body = undefined>(declaration: Route<Body>): Route => declaration as unknown as Route;

/** What a handler may use. */
export interface RouteParts {
  readonly ledger: Ledger;
  readonly reader: (projection: string) => Reader;
  readonly cursors: Cursors;
  readonly limits: RateLimits;
}

/** A request that has passed every check so far. */
export interface Asked<Body> {
  readonly tenantId: string;
  readonly application: HeldBy;
  readonly caller: Caller;
  /** The route's own. */
  readonly permission?: string;
  readonly query: ReadonlyMap<string, string>;
  readonly body: Body;
  readonly idempotency?: Idempotency;
  readonly precondition?: (tenant: ActiveTenant) => boolean;
  readonly at: string;
  readonly traceId: string;
  readonly deadline: number;
}

export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  /** The body as JSON, where it was made before. */
  readonly text?: string;
  /** The revision that the body shows. */
  readonly etag?: number;
  /** A write: answered when the read models show this position. */
  readonly position?: Position;
}

export const ok = (body: unknown, etag?: number): Answer => ({
  status: 200,
  body,
  ...(etag === undefined ? {} : { etag }),
});
