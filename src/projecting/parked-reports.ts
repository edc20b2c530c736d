import { generationName } from '../read-models/read-models';
import type { LiveGeneration } from './live-generations';
import { parkedTenants } from './projection-run';

/** A tenant that waits behind an event. */
export interface Blocked {
  readonly tenant_id: string;
  readonly event_id: string;
  readonly reason: string;
}

/** Who is parked in a projection, ordered by tenant. `isCut`: there may be more after the last one. */
export interface ParkedReport {
  readonly projection: string;
  readonly parked: readonly Blocked[];
  readonly isCut: boolean;
}

export const MOST_REPORTED = 1_000;

const reportOn = async ({ projector, generation }: LiveGeneration): Promise<ParkedReport> => {
  const parked: Blocked[] = [];
  for await (const { tenant_id, event_id, reason } of parkedTenants(generation)) {
    parked.push({ tenant_id, event_id, reason });
    if (parked.length === MOST_REPORTED) break;
  }
  return { projection: projector.name, parked, isCut: parked.length === MOST_REPORTED };
};

/**
 * Reports who is parked in the live read models: at first, after a switch, when a run says that it has changed, and when
 * another process may have changed it.
 */
export const parkedReports = (report: (one: ParkedReport) => void) => {
  const changed = new Set<string>();
  const reported = new Map<string, string>();
  return {
    changed: (generation: string): void => void changed.add(generation),
    /** Another process may have projected until now. */
    begin: (): void => reported.clear(),
    look: async (live: readonly LiveGeneration[]): Promise<void> => {
      for (const one of live) {
        const name = generationName(one.generation.id);
        if (!changed.delete(name) && reported.get(one.projector.name) === name) continue;
        reported.delete(one.projector.name);
        report(await reportOn(one));
        reported.set(one.projector.name, name);
      }
    },
  };
};
