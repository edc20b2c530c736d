import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Projector } from '../../projections/projector';
import type { ReadModels } from '../read-models/read-models';

/** A lease as one holder sees it. */
export interface Lease {
  /** Takes or renews it. False: another holder has it, or the store failed. */
  hold(note?: string): Promise<boolean>;
  release(): Promise<void>;
  /** Its current holder, as far as known. */
  holder(): Promise<string | undefined>;
}

const LEASE_MS = 2_500;

/** Tells an operator the machine and the process; the random part in the middle makes it unique. */
export const holderName = (): string => `${hostname()} ${randomUUID().slice(0, 8)} ${process.pid}`;

export const leaseOn = (
  readModels: ReadModels,
  what: string,
  onError: (what: string, error: unknown) => void,
  forMs = LEASE_MS,
  self = holderName(),
): Lease => ({
  hold: async (note) => {
    try {
      return await readModels.lease(what, self, forMs, note);
    } catch (error) {
      onError(`The lease ${what} cannot be renewed.`, error);
      return false;
    }
  },
  release: () => readModels.release(what, self).catch(() => undefined),
  holder: () => readModels.leaseHolder(what),
});

/**
 * The right to project, one lease per projection and version: next to an older program, a newer one projects only the
 * versions that are new and leaves the rest to the older one.
 */
export interface ProjectingLeases {
  /** Takes or renews all that are available. Returns the names of the projections that this process may project. */
  hold(): Promise<ReadonlySet<string>>;
  release(): Promise<void>;
  /** The processes that project, as far as known. */
  holder(): Promise<string | undefined>;
}

export const projectingLease = (projection: string, version: number): string =>
  `projecting ${projection}_v${version}`;

export const rebuildLease = (projection: string): string => `rebuild ${projection}`;

export const projectingLeases = (
  readModels: ReadModels,
  projectors: readonly Projector[],
  onError: (what: string, error: unknown) => void,
  self = holderName(),
): ProjectingLeases => {
  const leases = projectors.map(({ name, version }) => ({
    name,
    lease: leaseOn(readModels, projectingLease(name, version), onError, LEASE_MS, self),
  }));
  return {
    hold: async () => {
      const held = await Promise.all(leases.map(({ lease }) => lease.hold()));
      return new Set(leases.filter((_, i) => held[i]).map(({ name }) => name));
    },
    release: async () => void (await Promise.all(leases.map(({ lease }) => lease.release()))),
    holder: async () => {
      const holders = await Promise.all(leases.map(({ lease }) => lease.holder()));
      const known = [...new Set(holders.filter((holder) => holder !== undefined))];
      return known.length === 0 ? undefined : known.join(', ');
    },
  };
};
