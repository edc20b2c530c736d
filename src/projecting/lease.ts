import type { Projector } from '../../projections/projector';
import { monotonicMs } from '../async/clock';
import { holderName } from '../read-models/lease-holder';
import type { Leases, ReadModels } from '../read-models/read-models';
import type { Report } from './live-generations';

/** Several leases, as one holder keeps them. */
export interface KeptLeases {
  /**
   * Takes or renews all that are available, if it is time to. Returns those that are held: none if they could not be
   * renewed in time, by this process's own clock.
   */
  hold(note?: string): Promise<ReadonlySet<string>>;
  release(): Promise<void>;
}

/** Leases of others are tried this often. */
const TRY_MS = 1_000;

const NONE: ReadonlySet<string> = new Set();

export const keptLeases = (
  { lease, release, leaseMs }: Leases,
  names: readonly string[],
  onError: Report,
  self = holderName(),
): KeptLeases => {
  let held = NONE;
  let heldSince = -Infinity;
  let triedAt = -Infinity;
  let lastNote = '';

  const isDue = (now: number, note: string): boolean =>
    note !== lastNote || now - triedAt >= (held.size === names.length ? leaseMs / 2 : TRY_MS);

  return {
    hold: async (note = '') => {
      const now = monotonicMs();
      if (isDue(now, note)) {
        triedAt = now;
        lastNote = note;
        try {
          held = await lease(names, self, note);
          heldSince = now;
        } catch (error) {
          onError(`The leases ${names.join(', ')} cannot be renewed.`, error);
        }
      }
      if (monotonicMs() - heldSince >= leaseMs) held = NONE;
      return held;
    },
    release: async () => {
      held = NONE;
      triedAt = -Infinity;
      await release(names, self).catch(() => undefined);
    },
  };
};

export const projectingLease = (projection: string, version: number): string =>
  `projecting ${projection}_v${version}`;

export const rebuildLease = (projection: string): string => `rebuild ${projection}`;

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

export const projectingLeases = (
  readModels: ReadModels,
  projectors: readonly Projector[],
  onError: Report,
  self?: string,
): ProjectingLeases => {
  const leaseOf = ({ name, version }: Projector): string => projectingLease(name, version);
  const kept = keptLeases(readModels, projectors.map(leaseOf), onError, self);
  return {
    hold: async () => {
      const held = await kept.hold();
      return new Set(projectors.filter((projector) => held.has(leaseOf(projector))).map(({ name }) => name));
    },
    release: kept.release,
    holder: async () => {
      const { leases } = await readModels.state();
      const holders = projectors.map((projector) => leases.get(leaseOf(projector))?.holder);
      const known = [...new Set(holders.filter((holder) => holder !== undefined))];
      return known.length === 0 ? undefined : known.join(', ');
    },
  };
};
