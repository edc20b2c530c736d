import type { Fold } from './fold';

/**
 * A place for folded tenants, so that the first write after a restart does not fold a million events. It is only a
 * saving: a snapshot that is missing, old, of another program or of another log is not used, and losing one is harmless.
 */
export interface Snapshots {
  /** The newest one made with this version of the fold, if there is one that can be read. */
  load(stream: string): Promise<Fold | undefined>;
  /** Never rejects: a snapshot that cannot be saved is one that is not there. */
  save(stream: string, fold: Fold): Promise<void>;
  close(): Promise<void>;
}
