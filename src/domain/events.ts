import type { FactEvent } from './facts';
import type { KeyUseEvent } from './key-use';
import type { ApplicationType } from './permissions';

export interface TenantSettings {
  readonly fingerprintTokens: boolean;
  readonly deduplicateTokens: boolean;
}

/** What happened to a tenant, its Applications and their keys, by type. */
interface TenantEvents {
  TenantCreated: {
    name: string;
    ownerId: string;
    settings: TenantSettings;
    includedMonthlyActiveTokens: number;
  };
  TenantUpdated: { name: string; settings: TenantSettings };
  TenantPlanChanged: { includedMonthlyActiveTokens: number };
  TenantDeleted: Record<string, never>;
  ApplicationCreated: {
    applicationId: string;
    name: string;
    applicationType: ApplicationType;
    permissions: readonly string[];
  };
  ApplicationUpdated: { applicationId: string; name: string; permissions: readonly string[] };
  ApplicationDeleted: { applicationId: string };
  /** The digest is the SHA-256 of the key in hex. The key itself is never kept. */
  KeyAdded: {
    keyId: string;
    applicationId: string;
    digest: string;
    expiresAt?: string | undefined;
    name?: string | undefined;
  };
  KeyExpirySet: { keyId: string; applicationId: string; expiresAt: string };
  KeyRevoked: { keyId: string; applicationId: string };
}

/** The stream `tenant-<tenantId>`. */
export type TenantEvent = {
  [T in keyof TenantEvents]: { readonly type: T; readonly data: Readonly<TenantEvents[T]> };
}[keyof TenantEvents];

/** A tenant has one stream of decisions about it, and one of what other services report about it. */
export type StreamKind = 'tenant' | 'activity';

/** What the operator does besides deciding about tenants: the stream `operator`. */
export interface OperatorEvent {
  /** The event is skipped; or it is applied although events before it are missing. */
  readonly type: 'EventSetAside' | 'GapAccepted';
  readonly data: {
    readonly eventId: string;
    readonly eventTenantId: string;
    readonly reason: string;
  };
}

/** The stream `activity-<tenantId>`. */
export type ActivityEvent = FactEvent | KeyUseEvent;

export type LedgerEvent = TenantEvent | ActivityEvent;

export type EventType = LedgerEvent['type'];

export interface Actor {
  readonly type: 'application' | 'user';
  readonly id: string;
  /** The OS user who ran an operator command. */
  readonly osUser?: string;
}

/** Where a request came from. Personal data: no decision or read model depends on it. */
export interface Client {
  readonly address: string;
  readonly userAgent?: string;
}

/** A field that an event changes, named as the API names it. Null: there is no value. */
export interface FieldChange {
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}

/** What the log knows about an event besides its type and data. */
export interface Circumstances {
  readonly id: string;
  readonly tenantId: string;
  readonly revision: number;
  readonly position: string;
  /** The time that the event itself names, or else when it was recorded. ISO 8601, UTC. */
  readonly at: string;
  readonly recordedAt: string;
  readonly actor?: Actor;
  /** The API key of the request that caused it. */
  readonly keyId?: string;
  readonly traceId?: string;
  readonly idempotency?: Idempotency;
  /** What a decision changed. Reported facts have none. */
  readonly changes?: readonly FieldChange[];
}

/** Stored with the event of an idempotent request, so that a retry gets the same answer. */
export interface Idempotency {
  readonly key: string;
  /** Method and path, for example `PUT /tenants/self`. */
  readonly scope: string;
  /** SHA-256 of the request's body in hex. */
  readonly hash: string;
}

export type Recorded<E = LedgerEvent> = E & Circumstances;

/** An event that a decision caused, with what the state after it and the response depend on. */
export type Caused<T extends TenantEvent['type'] = TenantEvent['type']> = Extract<
  TenantEvent,
  { readonly type: T }
> &
  Pick<Circumstances, 'tenantId' | 'revision' | 'at' | 'actor' | 'idempotency'>;
