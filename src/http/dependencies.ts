import type { Logger } from 'pino';
import type { KeyUseRecord } from '../access/key-use-record';
import type { EventSource } from '../audit/event-source';
import type { HeaderNames } from '../configuration';
import type { Ledger } from '../ledger/ledger';
import type { KnownLiveSet } from '../projecting/live-set';
import type { RateLimits } from '../limits/rate-limits';
import type { ApiContext, Step } from './context';

/** What the API works with. */
export interface ApiDependencies {
  readonly settings: ApiSettings;
  readonly stores: Stores;
  readonly monitoring: Monitoring;
  /** The web console. Undefined: it is switched off. */
  readonly portal?: Step | undefined;
}

/** As configured. */
export interface ApiSettings {
  readonly headers: HeaderNames;
  readonly publicUrl: string;
  /** The origins whose pages may call the API from a browser: `*` for all, empty for none. */
  readonly corsOrigins: readonly string[];
  /** Whether events record the client that caused them. */
  readonly recordsClients: boolean;
  /** How many proxies append to `X-Forwarded-For`. */
  readonly trustedProxies: number;
  /** The version of the program. */
  readonly version: string;
}

/** What is read and written. Handlers get these. */
export interface Stores {
  readonly ledger: Ledger;
  readonly readModels: Pick<KnownLiveSet, 'read' | 'reached' | 'mayPark'>;
  readonly events: EventSource;
  readonly keyUses: KeyUseRecord;
  readonly limits: RateLimits;
}

export interface RequestMetrics {
  began(): void;
  /** The response was sent, or the client disconnected. */
  ended(ctx: ApiContext): void;
}

export interface Monitoring {
  readonly logger: Logger;
  readonly metrics: RequestMetrics;
}
