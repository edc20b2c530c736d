/**
 * When each key was last accepted. This is operational data, not history: it is stored outside the log and the read
 * models, and losing it is harmless.
 */
export interface KeyUses {
  /** Never throws or blocks. A key is written at most once a minute. */
  used(tenantId: string, keyId: string, at: string): void;
  /**
   * By key id: for these keys, at a cost that grows with their number, or for all keys of the tenant. Keys that were
   * never used are omitted.
   */
  lastUses(tenantId: string, keyIds?: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Writes what is pending. */
  close(): Promise<void>;
}
