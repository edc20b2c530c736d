import { upTo } from '../event-log/reading';
import { newGeneration, type ReadModels, type Target } from '../read-models/read-models';
import { compare, type Comparison, type Difference } from './compare';
import { batchOf } from './batch';
import type { Batches } from './consumer';
import type { LiveGeneration } from './live-generations';
import { parkedTenants, type ParkedTenant } from './parked-tenants';
import { retryDue } from './retry-parked';
import { project, runInto } from './projection-run';
import type { ReplayDependencies } from './rebuild';

export interface VerifyOptions {
  readonly tenantId?: string | undefined;
  readonly onDifference: (difference: Difference) => void;
  readonly onProgress: (what: string) => void;
}

export interface Verified extends Comparison {
  readonly projection: string;
  readonly parked: readonly string[];
  /** Events before which others are missing from the log, unless the operator has accepted the gap. */
  readonly gaps: readonly Pick<ParkedTenant, 'tenant_id' | 'event_id' | 'reason'>[];
}

/** The events of the whole log or of one tenant, up to a position. */
const eventsOf = (dependencies: ReplayDependencies, tenantId: string | undefined, last: string): Batches => {
  const { log, streams, consumer } = dependencies;
  if (tenantId === undefined) return consumer.upTo(last);
  return async function* (after) {
    for await (const due of upTo(log.readTenant(tenantId, { after }), last)) yield batchOf(due, streams);
  };
};

/** Replays into a scratch store and compares. The live read model is not touched, and may keep advancing. */
export const verify = async (
  dependencies: ReplayDependencies,
  scratch: ReadModels,
  { projector, generation: live }: LiveGeneration,
  options: VerifyOptions,
): Promise<Verified> => {
  const { log } = dependencies;
  const id = newGeneration(projector.name, projector.version);
  await scratch.create(id, projector.collections, await log.identity());
  const build = await scratch.build(id, projector.collections);

  const follow =
    (target: Target) =>
    async (position: string): Promise<void> => {
      const moved = (done: string): void =>
        options.onProgress(`${projector.name}: replayed to ${done} of ${position}`);
      const run = await runInto(dependencies, projector, target, moved);
      await retryDue(run);
      await project(run, eventsOf(dependencies, options.tenantId, position));
    };

  const { to } = await live.control();
  if (to !== undefined) await follow(build)(to.position);
  const replayed = await build.finish();
  const comparison = await compare(projector, live, replayed, {
    follow: follow(replayed),
    onDifference: options.onDifference,
    onProgress: (documents) => options.onProgress(`${projector.name}: ${documents} documents compared`),
    tenantId: options.tenantId,
  });
  const parked: string[] = [];
  for await (const tenant of parkedTenants(live))
    if (options.tenantId === undefined || tenant.tenant_id === options.tenantId)
      parked.push(tenant.tenant_id);
  const gaps: Verified['gaps'][number][] = [];
  for await (const { cause, tenant_id, event_id, reason } of parkedTenants(replayed))
    if (cause === 'missing_events') gaps.push({ tenant_id, event_id, reason });
  return { projection: projector.name, ...comparison, parked, gaps };
};
