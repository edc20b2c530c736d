/** What the API sends, as far as the portal uses it. */

export interface Log {
  readonly id: string;
  readonly actor_id?: string;
  readonly actor_type?: string;
  readonly entity_type: string;
  readonly entity_id: string;
  readonly operation: string;
  readonly message: string;
  readonly created_at: string;
  readonly source: Source;
  /** What the actor was called then. */
  readonly actor_name?: string;
  /** When a fact says that it happened. */
  readonly occurred_at?: string;
}

export type Source = 'decision' | 'access' | 'fact';

interface Page<T> {
  readonly pagination: {
    readonly next?: string;
    readonly total_items?: number;
    readonly total_pages?: number;
  };
  readonly data: readonly T[];
}
export type LogPage = Page<Log>;
export type ApplicationPage = Page<Application>;

export interface Change {
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}

interface Client {
  readonly address?: string;
  readonly userAgent?: string;
}

export interface LedgerEvent {
  readonly id: string;
  readonly type: string;
  readonly position: string;
  readonly recorded_at: string;
  readonly actor?: { readonly type: string; readonly id: string; readonly name?: string };
  readonly trace_id?: string;
  readonly key_id?: string;
  /** Which of these there are depends on the type. */
  readonly data: {
    readonly applicationId?: string;
    readonly keyId?: string;
    readonly name?: string;
    readonly applicationType?: ApplicationType;
    readonly permissions?: readonly string[];
    readonly expiresAt?: string;
    readonly occurredAt?: string;
    readonly operations?: Readonly<Record<string, number>>;
    readonly refusals?: Readonly<Record<string, number>>;
    readonly missingPermissions?: readonly string[];
    readonly date?: string;
  };
  readonly metadata: {
    readonly at?: string;
    readonly client?: Client;
    readonly clients?: readonly (Client & { readonly requests?: number })[];
    /** Who reported it. */
    readonly service?: { readonly name?: string };
  };
  readonly log?: Log;
  readonly changes?: readonly Change[];
}

export interface LogCounts {
  readonly data: readonly { readonly start_date: string; readonly count: number }[];
}

export interface EntityType {
  readonly value: string;
  readonly display_name: string;
}

export interface Key {
  readonly id: string;
  readonly key?: string;
  readonly name?: string;
  readonly created_at: string;
  readonly expires_at?: string;
  readonly last_used_at?: string;
}

export interface Application {
  readonly id: string;
  readonly name: string;
  readonly type: ApplicationType;
  readonly permissions: readonly string[];
  readonly key?: string;
  /** The key of the request; only of the Application that made it. */
  readonly key_id?: string;
  readonly keys: readonly Key[];
  readonly created_at: string;
}

/** Whose session it is. Nobody's: it is empty. */
export interface FoundSession {
  readonly session?: string;
  readonly application?: Application;
  /** If the key may see it. */
  readonly tenant_name?: string;
}

export type ApplicationType = 'public' | 'private' | 'management';

export interface Permission {
  readonly type: string;
  readonly description: string;
  readonly application_types: readonly ApplicationType[];
}

export interface KeyDay {
  readonly date: string;
  readonly operations: Readonly<Record<string, number>>;
  readonly refusals: Readonly<Record<string, number>>;
  readonly missing_permissions: readonly string[];
  readonly last_used_at?: string;
}

export interface Tenant {
  readonly id: string;
  readonly name: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly created_at: string;
  readonly modified_at?: string;
}

export interface UsageReport {
  readonly token_report: {
    readonly metrics_by_type: Readonly<
      Record<string, { readonly count: number; readonly last_created_at?: string }>
    >;
  } & Omit<ActiveTokens, 'month'>;
  /** Oldest first, if they were asked for. */
  readonly months?: readonly ActiveTokens[];
}

export interface ActiveTokens {
  readonly month: string;
  readonly included_monthly_active_tokens: number;
  readonly monthly_active_tokens: number;
}

export interface Problem {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail?: string;
}
