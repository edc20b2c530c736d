import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Projector } from '../../projections/projector';
import type { ReadModels } from '../read-models/read-models';

/** A lease that this process takes, renews and gives back. */
export interface Lease {
  /** True while it could be taken or renewed; false as soon as another one has it. */
  hold(note?: string): Promise<boolean>;
  release(): Promise<void>;
  /** Who has it now, as far as anybody can say. */
  holder(): Promise<string | undefined>;
}

const LEASE_MS = 2_500;

/** A name that tells an operator which machine and process it is; the middle part tells one use from another. */
export const holderName = (): string => `${hostname()} ${randomUUID().slice(0, 8)} ${process.pid}`;

export const leaseOn = (
  readModels: ReadModels,
  what: string,
  onError: (what: string, error: unknown) => void,
  forMs = LEASE_MS,
  me = holderName(),
): Lease => ({
  hold: async (note) => {
    try {
      return await readModels.lease(what, me, forMs, note);
    } catch (error) {
      onError(`The lease ${what} cannot be renewed.`, error);
      return false;
    }
  },
  release: () => readModels.release(what, me).catch(() => undefined),
  holder: () => readModels.leaseHolder(what),
});

/**
 * The right to project, each projection and version by itself: a newer program beside an older one projects what only it
 * knows, and leaves the rest to that one.
 */
export interface ProjectingLeases {
  /** Takes and renews what can be had: the names of the projections that this process may project now. */
  hold(): Promise<ReadonlySet<string>>;
  release(): Promise<void>;
  /** Who projects, as far as anybody can say. */
  holder(): Promise<string | undefined>;
}

export const projectingLease = (projection: string, version: number): string =>
  `projecting ${projection}_v${version}`;

export const rebuildLease = (projection: string): string => `rebuild ${projection}`;

export const projectingLeases = (
  readModels: ReadModels,
  projectors: readonly Projector[],
  onError: (what: string, error: unknown) => void,
  me = holderName(),
): ProjectingLeases => {
  const leases = projectors.map(({ name, version }) => ({
    name,
    lease: leaseOn(readModels, projectingLease(name, version), onError, LEASE_MS, me),
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
