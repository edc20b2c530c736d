import type { Document } from 'mongodb';
import { nameOfCode } from './failure';
import type { Store } from './store';

/**
 * Which part of the primary's state a majority of a replica set has. A write with write concern `majority`, the default
 * since MongoDB 5.0, is confirmed before it is acknowledged, and with it all writes before it. One with `w: 1` stays
 * unconfirmed until then: on a real set it would be confirmed a moment later, unless the primary fails.
 */
export interface Replication {
  /** From now on nothing is confirmed: writes that need a majority wait. */
  hold(): void;
  /** Confirms everything, now and from now on. */
  release(): void;
  /** The primary fails: writes without a majority are lost, and no client learns whether its write was. */
  rollBack(): void;
  /** For the server: resolves when the write may be acknowledged. `lost`: the primary failed in the meantime. */
  acknowledge(writeConcern: Document | undefined): Promise<Acknowledgement>;
}

export type Acknowledgement = 'lost' | { readonly writeConcernError?: Document };

export const replicationOf = (store: Store, { isStandalone }: { isStandalone: boolean }): Replication => {
  const waiting = new Set<(acknowledgement: Acknowledgement) => void>();
  let isHeld = false;

  const settle = (acknowledgement: Acknowledgement): void => {
    for (const resolve of waiting) resolve(acknowledgement);
    waiting.clear();
  };
  const confirmed = (wtimeout: number): Promise<Acknowledgement> =>
    new Promise((resolve) => {
      const timer = wtimeout > 0 ? setTimeout(() => end(timedOut()), wtimeout) : undefined;
      const end = (acknowledgement: Acknowledgement): void => {
        clearTimeout(timer);
        waiting.delete(end);
        resolve(acknowledgement);
      };
      waiting.add(end);
    });

  return {
    hold: () => (isHeld = true),
    release: () => {
      isHeld = false;
      store.confirm();
      settle({});
    },
    rollBack: () => {
      store.rollBack();
      settle('lost');
    },
    acknowledge: async (writeConcern) => {
      if (isStandalone) {
        store.confirm();
        return {};
      }
      const w: unknown = writeConcern?.['w'] ?? 'majority';
      if (w !== 'majority' && Number(w) <= 1) return {};
      if (isHeld && store.unconfirmed > 0) return confirmed(Number(writeConcern?.['wtimeout'] ?? 0));
      store.confirm();
      return {};
    },
  };
};

const timedOut = (): Acknowledgement => ({
  writeConcernError: {
    code: 64,
    codeName: nameOfCode(64),
    errmsg: 'waiting for replication timed out',
    errInfo: { wtimeout: true },
  },
});
