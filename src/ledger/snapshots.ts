import type { Fold } from './fold';
import type { PackedRequests } from './remembered-requests';

/** A tenant as it was at one event of its stream. */
export interface TenantSnapshot {
  readonly fold: Fold;
  /** The remembered requests, under the name that they are stored with. */
  readonly replies: PackedRequests;
}

/**
 * Stores one snapshot per tenant, so that the first write after a restart need not read a million events. Only a cache:
 * snapshots that are missing, outdated, or from another program or log are ignored, and losing them is harmless.
 */
export interface Snapshots {
  /** The snapshot of this FOLD_VERSION, if there is one that can be read. */
  load(stream: string): Promise<TenantSnapshot | undefined>;
  /** Never rejects: a snapshot that cannot be saved is simply missing. */
  save(stream: string, snapshot: TenantSnapshot): Promise<void>;
  close(): Promise<void>;
}
