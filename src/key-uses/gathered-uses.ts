import { boundedCache } from '../bounded-cache';
import { monotonicMs } from '../clock';
import type { KeyUses } from './key-uses';

export interface KeyUse {
  readonly tenantId: string;
  readonly keyId: string;
  readonly at: string;
}

export interface KeyUsesOptions {
  readonly periodMs?: number;
  readonly maxKeys?: number;
}

const PERIOD_MS = 60_000;

/** Uses within this time are written as one batch. */
const BATCH_MS = 500;

/** With more keys than this, the oldest write times are forgotten, so those keys are written more often. */
const MAX_KEYS = 10_000;

/** Throttles and batches writes. A failed write is lost: the key is written again after a minute. */
export const gatheredUses = (
  write: (uses: readonly KeyUse[]) => Promise<unknown>,
  { periodMs = PERIOD_MS, maxKeys = MAX_KEYS }: KeyUsesOptions,
): Pick<KeyUses, 'used' | 'close'> => {
  const writtenAt = boundedCache<number>(maxKeys);
  let gathered: KeyUse[] = [];
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<unknown> = Promise.resolve();

  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const uses = gathered;
    gathered = [];
    if (uses.length > 0) writing = write(uses).catch(() => undefined);
  };

  return {
    used: (tenantId, keyId, at) => {
      const now = monotonicMs();
      if (now - (writtenAt.get(keyId) ?? -Infinity) < periodMs) return;
      writtenAt.put(keyId, now);
      gathered.push({ tenantId, keyId, at });
      timer ??= setTimeout(flush, BATCH_MS).unref();
    },
    close: async () => {
      flush();
      await writing;
    },
  };
};
