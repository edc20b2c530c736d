import type { Position } from '../event-log/event-log';
import type { UnreadableTenant } from '../ledger/fold';
import type { ParkedTenant } from './parked-tenants';
import type { RebuildStep } from './rebuild';

/** How far a read model is behind the log. Snake case: this is what `/readyz` and `status --json` show. */
export interface ProjectionStatus {
  readonly projection: string;
  /** Null: it has not been built yet. */
  readonly generation: string | null;
  readonly position: Position | null;
  readonly lag_events: number;
  /** The age of the oldest event in the log that was not applied yet. */
  readonly lag_seconds: number;
  readonly parked: readonly ParkedTenant[];
  /** Why the live generation cannot be read, and what to do. */
  readonly damage?: string;
}

export interface RunningRebuild {
  readonly projection: string;
  readonly holder: string;
  readonly step: RebuildStep['step'];
  /** From 0 to 1. */
  readonly progress: number;
}

export interface LedgerStatus {
  readonly log: {
    /** Where it is stored. */
    readonly store: string;
    readonly identity: string;
    readonly head: Position | null;
    /** A problem with a log that can be read. */
    readonly trouble?: string;
  };
  readonly projector: string | null;
  readonly projections: readonly ProjectionStatus[];
  readonly rebuilds: readonly RunningRebuild[];
  /** Tenants whose own stream cannot be read, so that their writes are refused. */
  readonly decisions: { readonly parked: readonly UnreadableTenant[] };
}
