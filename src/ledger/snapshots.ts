import type { Fold } from './fold';
import type { KeptReplies } from './replies';

/**
 * Stores folded tenants and remembered requests, so that the first write after a restart need not read a million events.
 * Only a cache: entries that are missing, outdated, or from another program or log are ignored, and losing it is
 * harmless.
 */
export interface Snapshots {
  /** The newest snapshot of this FOLD_VERSION that can be read, if any. */
  load(stream: string): Promise<Fold | undefined>;
  /** Never rejects: a snapshot that cannot be saved is simply missing. */
  save(stream: string, fold: Fold): Promise<void>;
  readonly replies: KeptReplies;
  close(): Promise<void>;
}
