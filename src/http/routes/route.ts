import type { LiveTail } from '../../audit/live-tail';
import type { OpenStreams } from '../../audit/open-streams';
import type { Caller, KeyHolder } from '../../domain/authority';
import type { Client, Idempotency } from '../../domain/events';
import type { Position } from '../../event-log/event-log';
import type { LedgerLog } from '../../event-log/ledger-log';
import type { KeyUses } from '../../key-uses/key-uses';
import type { Ledger } from '../../ledger/ledger';
import type { RateLimits } from '../../limits/rate-limits';
import type { Reader } from '../../../projections/projector';
import type { Cursors } from './cursor';
import type { BodyCheck, QueryCheck } from '../request/validation';
import type { Schema } from './schema';

/** The groups of the published description. */
export const tags = {
  Permissions: 'What an Application may be allowed to do.',
  Logs: 'The audit log of the Tenant that owns the key.',
  Events: 'The events behind the audit log, as they are stored.',
  Tenants: 'The Tenant that owns the key.',
  Applications: 'The Applications of the Tenant, and their keys.',
  Reports: 'What the Tenant uses.',
  Limits: 'Rate limits per client address.',
  Description: 'What this service is; no key is needed.',
};

export type Tag = keyof typeof tags;

/** A route is a declaration; everything that all routes share happens around it. */
export interface Route<Body = unknown, Query = unknown> {
  readonly method: 'get' | 'put' | 'post' | 'delete';
  readonly path: string;
  /** The name of the method in a client library that is made from the published description. */
  readonly operationId: string;
  /** One line for the published description. */
  readonly summary: string;
  /** What it belongs to in the published description. */
  readonly tag: Tag;
  /** The schemas of the `:name` parts of the path, for the published description. */
  readonly params?: Readonly<Record<string, Schema>>;
  /** Left out: any valid API key. */
  readonly permission?: string;
  /** Left out: the route takes no parameters and ignores them. */
  readonly query?: QueryCheck<Query>;
  /** Left out: the route takes no body and ignores one. */
  readonly body?: BodyCheck<Body>;
  /** What it answers when all is well. Tests hold every answer against it; at run time it is not checked. */
  readonly answer: SuccessResponse;
  /** A write that takes no `If-Match`: there is nothing yet that could have changed. */
  readonly isUnconditional?: true;
  /** The projection that it reads: if the tenant is parked there, the answer says until when it is complete. */
  readonly from?: string;
  readonly handle: (asked: Asked<Body, Query>, parts: RouteParts) => Promise<Answer>;
}

export type SuccessResponse =
  | {
      readonly status: 200 | 201;
      readonly description: string;
      readonly schema: Schema;
      /** For the published description. */
      readonly example: unknown;
      /**
       * It has an entity tag, and a GET may be answered with 304. With `unless_read` it may not: a GET shows things
       * that change without the tag.
       */
      readonly etag?: true | 'unless_read';
      /** The media types that it may come in; left out: JSON. */
      readonly media?: readonly string[];
      /** A list that may be cut: then a header says how many there are. */
      readonly mayBeCut?: true;
    }
  | { readonly status: 204; readonly description: string };

export const route = <Body = undefined, Query = unknown>(declaration: Route<Body, Query>): Route =>
  declaration as unknown as Route;

/** What a handler may use. */
export interface RouteParts {
  readonly ledger: Ledger;
  readonly reader: (projection: string) => Reader;
  readonly cursors: Cursors;
  readonly keyUses: Pick<KeyUses, 'lastUses'>;
  readonly limits: RateLimits;
  readonly events: EventSource;
  /** Throws once the event log was found to be set back: then nothing is read or written. */
  readonly mustBeWhole: () => void;
}

/** Where raw events are read from, and who may read them at once. */
export interface EventSource {
  readonly ledgerLog: LedgerLog;
  readonly tail: LiveTail;
  readonly open: OpenStreams['open'];
  /** Aborted when the process is stopping. */
  readonly stopping: AbortSignal;
}

/** A request that has passed every check so far. */
export interface Asked<Body, Query = unknown> {
  readonly tenantId: string;
  readonly application: KeyHolder;
  readonly caller: Extract<Caller, { kind: 'key' }>;
  /** The route's own. */
  readonly permission: string | undefined;
  /** The values of the `:name` parts of the path. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  /** A header of the request. */
  readonly header: (name: string) => string | undefined;
  readonly body: Body;
  readonly idempotency: Idempotency | undefined;
  /** `If-Match`: does it name this revision? */
  readonly isMet: ((revision: number) => boolean) | undefined;
  readonly at: string;
  readonly traceId: string;
  /** Undefined: it is not to be kept. */
  readonly client: Client | undefined;
  readonly deadline: number;
}

export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  /** Its media type; left out: JSON. */
  readonly type?: string;
  /** The revision that the body shows. */
  readonly etag?: number;
  /** How many there are of what the body lists, if that is cut. */
  readonly totalItems?: number;
  /** A write: answered when the read models show this position. */
  readonly position?: Position;
}

/** A GET is answered with 304 if the client knows it already. */
export const mayBeUnchanged = ({ method, answer }: Route): boolean =>
  method === 'get' && 'etag' in answer && answer.etag === true;

export const takesCondition = ({ method, isUnconditional }: Route): boolean =>
  method !== 'get' && isUnconditional !== true;

export const ok = (body: unknown, etag?: number): Answer => ({
  status: 200,
  body,
  ...(etag === undefined ? {} : { etag }),
});
