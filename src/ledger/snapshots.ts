import type { Fold } from './fold';
import type { KeptReplies } from './replies';

/**
 * A place for folded tenants and remembered requests, so that the first write after a restart does not read a million
 * events. It is only a saving: what is missing, old, of another program or of another log is not used, and losing it is
 * harmless.
 */
export interface Snapshots {
  /** The newest one made with this version of the fold, if there is one that can be read. */
  load(stream: string): Promise<Fold | undefined>;
  /** Never rejects: a snapshot that cannot be saved is one that is not there. */
  save(stream: string, fold: Fold): Promise<void>;
  readonly replies: KeptReplies;
  close(): Promise<void>;
}
