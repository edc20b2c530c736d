import { fault } from '../fault';
import type { ParkedTenant, ReadModels } from '../read-models/read-models';
import { compare, type Comparison, type Difference } from './compare';
import { parkedTenants } from './parked-tenants';
import { tenantProjection, type ReplayDependencies } from './project-tenants';
import { replayInto } from './rebuild';

export interface VerifyOptions {
  readonly tenantId?: string | undefined;
  readonly onDifference: (difference: Difference) => void;
  /** Called with the number of events replayed and of documents compared so far. */
  readonly onProgress: (events: number, documents: number) => void;
}

export interface Verified extends Comparison {
  readonly parked: readonly string[];
  /** Events before which others are missing from the log, unless the operator has accepted the gap. */
  readonly gaps: readonly ParkedTenant[];
}

/** Replays into a scratch store and compares. The live set is not touched, and may keep advancing. */
export const verify = async (
  dependencies: ReplayDependencies,
  scratch: ReadModels,
  { tenantId, onDifference, onProgress }: VerifyOptions,
): Promise<Verified> => {
  const { log, readModels, projector, abort } = dependencies;
  const live = await readModels.live();
  if (live === undefined) throw fault('read_models_unavailable', 'The read models have not been built yet.');
  const replayed = tenantProjection(dependencies, await scratch.create(await log.identity()));
  let events = 0;
  const follow = replayInto(dependencies, replayed, {
    ...(tenantId === undefined ? {} : { read: (after) => log.readTenant(tenantId, { after }) }),
    onEvents: (more) => onProgress((events += more), 0),
  });
  if (live.control.to !== undefined) await follow(live.control.to.position);
  await replayed.set.finish();
  const comparison = await compare(projector, tenantProjection(dependencies, live.set), replayed, {
    onDifference,
    onDocuments: (documents) => onProgress(events, documents),
    tenantId,
    abort,
  });
  const parked: string[] = [];
  const gaps: ParkedTenant[] = [];
  for await (const { tenant_id } of parkedTenants(live.set))
    if (tenant_id === (tenantId ?? tenant_id)) parked.push(tenant_id);
  for await (const tenant of parkedTenants(replayed.set))
    if (tenant.cause === 'missing_events') gaps.push(tenant);
  return { ...comparison, parked, gaps };
};
