import type { Projector } from '../../projections/projector';
import type { EventLog } from '../event-log/event-log';
import { generationName, type ReadModels } from '../read-models/read-models';
import { rebuildLease } from './lease';

/** The number of the generation that a killed rebuild has left, to go on with. */
export const leftByRebuild = async (
  readModels: ReadModels,
  { name, version }: Projector,
): Promise<number | undefined> => {
  const all = (await readModels.generations()).filter(
    (id) => id.projection === name && id.version === version,
  );
  const pointer = await readModels.pointer(name, version);
  const last = Math.max(0, pointer?.live ?? 0, pointer?.previous ?? 0);
  for (const id of all.toSorted((a, b) => b.generation - a.generation))
    if (id.generation > last && !(await readModels.isRemoved(id))) return id.generation;
  return undefined;
};

/** What a rebuild would do, as far as it can be known before. */
export interface RebuildPlan {
  readonly projection: string;
  readonly version: number;
  /** Events to read. */
  readonly events: number;
  /** A killed rebuild is gone on with. */
  readonly goes_on_with: string | null;
  /** What it is compared with, and what stays to roll back to. */
  readonly live: string | null;
  /** Who would have to finish first. */
  readonly rebuilt_by: string | null;
}

export const planRebuild = async (
  { readModels, log }: { readModels: ReadModels; log: EventLog },
  projector: Projector,
): Promise<RebuildPlan> => {
  const { name, version } = projector;
  const nameOf = (generation: number): string => generationName({ projection: name, version, generation });
  const left = await leftByRebuild(readModels, projector);
  const pointer = await readModels.pointer(name, version);
  const begun =
    left === undefined ? undefined : await readModels.peek({ projection: name, version, generation: left });
  const after = (await begun?.control())?.to?.position;
  const head = await log.head();
  return {
    projection: name,
    version,
    events: head === undefined ? 0 : await log.distance(after, head.position),
    goes_on_with: left === undefined ? null : nameOf(left),
    live: pointer === undefined ? null : nameOf(pointer.live),
    rebuilt_by: (await readModels.leaseHolder(rebuildLease(name))) ?? null,
  };
};
