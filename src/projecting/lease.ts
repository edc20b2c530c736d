import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { ReadModels } from '../read-models/read-models';

/** A lease that this process takes, renews and gives back. */
export interface Lease {
  /** True while it could be taken or renewed; false as soon as another one has it. */
  hold(note?: string): Promise<boolean>;
  release(): Promise<void>;
  /** Who has it now, as far as anybody can say. */
  holder(): Promise<string | undefined>;
  note(): Promise<string | undefined>;
}

const LEASE_MS = 2_500;

/** A name that tells an operator which machine and process it is; the middle part tells one use from another. */
const holderName = (): string => `${hostname()} ${randomUUID().slice(0, 8)} ${process.pid}`;

export const leaseOn = (
  readModels: ReadModels,
  what: string,
  onTrouble: (what: string, error: unknown) => void,
  forMs = LEASE_MS,
): Lease => {
  const me = holderName();
  return {
    hold: async (note) => {
      try {
        return await readModels.lease(what, me, forMs, note);
      } catch (error) {
        onTrouble(`The lease ${what} cannot be renewed.`, error);
        return false;
      }
    },
    release: () => readModels.release(what, me).catch(() => undefined),
    holder: () => readModels.leaseHolder(what),
    note: () => readModels.leaseNote(what),
  };
};

export const projectingLease = (
  readModels: ReadModels,
  onTrouble: (what: string, error: unknown) => void,
): Lease => leaseOn(readModels, 'projecting', onTrouble);
