/**
 * When each key was last accepted. It is operational data, no part of any history: it lives outside the log and the read
 * models, and losing it is harmless.
 */
export interface KeyUses {
  /** Never throws and never waits; a key is written down at most once a minute. */
  used(tenantId: string, keyId: string, at: string): void;
  /**
   * By key id: of these keys, at a cost that grows with their number, or of all keys of the tenant. Keys that were never
   * used are not in it.
   */
  lastUses(tenantId: string, keyIds?: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Writes what is left. */
  close(): Promise<void>;
}
