import type { Caller } from '../domain/authority';
import type { ServiceRight } from '../domain/events';
import type { ServiceIdentity } from '../domain/services';
import type { KeyHolder } from '../domain/tenant';
import type { Position } from '../event-log/event-log';
import type { Executed, TenantRequest } from '../ledger/ledger';
import type { TenantReader } from '../projecting/live-set';
import type { ApiDependencies, HeaderNames } from './context';
import type { Parameters, ValuesOf } from './query-parameters';
import type { Schema } from './schema';
import type { BodyCheck } from './validation';

/** A route is a declaration; whatever all routes have in common happens around it. */
export interface Route<
  Body = unknown,
  P extends Parameters = Parameters,
  Request = RouteRequest<Body, ValuesOf<P>>,
> {
  readonly method: 'get' | 'put' | 'post' | 'delete';
  readonly path: string;
  readonly summary: string;
  /** The schemas of the `:name` parts of the path, for the OpenAPI document. */
  readonly params?: Readonly<Record<string, Schema>>;
  /** Omitted: any valid API key is accepted. */
  readonly permission?: string;
  /** It is for services that may do this, with keys of their own. */
  readonly service?: ServiceRight;
  /** A POST that changes nothing. */
  readonly isRead?: true;
  /** The header that the request has besides those of all. */
  readonly header?: keyof HeaderNames;
  /** Omitted: there are none. Others are refused. */
  readonly query?: P;
  /** Omitted: a body is ignored. */
  readonly body?: BodyCheck<Body>;
  /** The body may also be lines, as this sample, which are passed on as they were sent. */
  readonly lines?: string;
  /** The response on success. Checked by the tests, not at run time. */
  readonly response: SuccessResponse;
  /** A write that does not support `If-Match`: there is nothing yet that could have changed. */
  readonly isUnconditional?: true;
  /** Its handler calls `read`: the OpenAPI document lists the header for a parked tenant. Checked by the tests. */
  readonly reads?: true;
  readonly handle: (request: Request, dependencies: ApiDependencies) => Promise<RouteResponse>;
}

/** A route as the API lists it. */
export interface NamedRoute extends Route {
  /** The name of the method in client libraries generated from the OpenAPI document. */
  readonly operationId: string;
  readonly tag: string;
}

export type SuccessResponse = { readonly description: string } & (
  | {
      /** Default: 200. */
      readonly status?: 201;
      readonly schema: Schema;
      /** For the OpenAPI document. Omitted: it is made from the schema. */
      readonly example?: unknown;
      /** It has an entity tag, and the response to a GET may be 304. */
      readonly etag?: true;
      /** It contains a new API key, so nobody may store it. */
      readonly showsKey?: true;
    }
  | { readonly status: 204 }
  | {
      /** It has no body, but these headers, unless it is a 401 or a 403. */
      readonly headers: readonly (keyof HeaderNames)[];
    }
  | {
      /** The media types that it is available in. */
      readonly media: Readonly<Record<string, { readonly schema: Schema; readonly example: string }>>;
      /** The schema of each line, if the lines are JSON. */
      readonly lines?: Schema;
    }
);

export const route = <Body = undefined, P extends Parameters = Parameters>(
  declaration: Route<Body, P>,
): Route => declaration as unknown as Route;

/** A request of a service that has passed all checks before its handler. */
export interface ServiceRequest<Body = unknown, Query = unknown> extends Pick<
  RouteRequest<Body, Query>,
  'at' | 'deadline' | 'query' | 'body' | 'header'
> {
  readonly service: ServiceIdentity;
}

/** Declares a route for services. */
export const serviceRoute = <Body = undefined, P extends Parameters = Parameters>(
  declaration: Route<Body, P, ServiceRequest<Body, ValuesOf<P>>> & { readonly service: ServiceRight },
): Route => declaration as unknown as Route;

export const changesSomething = ({ method, isRead }: Route): boolean => method !== 'get' && isRead !== true;

/** A request that has passed all checks before its handler. */
export interface RouteRequest<Body = unknown, Query = unknown> extends TenantRequest {
  readonly caller: Extract<Caller, { kind: 'key' }>;
  readonly application: KeyHolder;
  /** The key that the caller used. */
  readonly keyId: string;
  /** The values of the `:name` parts of the path. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  /**
   * Runs a query on the read models. If the tenant is parked in them, a header says until when the response is complete,
   * and it has no entity tag.
   */
  readonly read: <T>(query: (reader: TenantReader) => Promise<T>) => Promise<T>;
  readonly header: (name: string) => string | undefined;
  /** The media type that the client prefers, by default the first. False: it accepts none of them. */
  readonly accepts: (...types: readonly string[]) => string | false;
  /** Counts the events that the response contained, once, when it has ended. */
  readonly gaveOut: (events: number) => void;
  /** Aborted when the connection is closed before the response is complete. */
  readonly gone: () => AbortSignal;
}

/** What a handler responds with; the status is that of the declaration. */
export interface RouteResponse extends Partial<Pick<Executed, 'position' | 'isShown' | 'isRepeat'>> {
  readonly body?: unknown;
  /** The media type. Default: JSON. */
  readonly type?: string;
  /** The entity tag of the body, without quotes: the revision of the last event that changed what it shows. */
  readonly etag?: string | undefined;
  /** Default: that of the declaration. */
  readonly status?: 401 | 403;
  readonly headers?: Readonly<Record<string, string>>;
  /** Up to where these tenants are to be shown. */
  readonly toShow?: ReadonlyMap<string, Position>;
}

export const statusOf = (response: SuccessResponse): number => ('status' in response ? response.status : 200);

/** Whether a GET gets a 304 if the client already has the current version. */
export const mayBeUnchanged = ({ method, response }: Route): boolean =>
  method === 'get' && 'etag' in response;
