import { upTo } from '../event-log/reading';
import { codeOf } from '../fault';
import { batchOf, type Batch } from './batch';
import { foldWaiting, type Retried } from './fold-batch';
import { parkedKey, parkedTenants, type ParkedTenant } from './parked-tenants';
import { parkedBy, type ProjectionRun } from './projection-run';

type Outcome = Retried['outcome'] | 'overtaken';

/** Splits the batch in halves if it is too large for one commit. A single event too large leaves the tenant parked. */
const commitWaiting = async (
  run: ProjectionRun,
  n: number,
  tenant: ParkedTenant,
  batch: Batch,
): Promise<Outcome> => {
  const retried = await foldWaiting(run, tenant, batch);
  try {
    if (!(await run.generation.commit(n, undefined, retried.writes))) return 'overtaken';
    if (retried.outcome === 'parked') for (const again of parkedBy(retried.writes)) run.parked?.(again);
    return retried.outcome;
  } catch (error) {
    if (codeOf(error) !== 'commit_too_large') throw error;
    return batch.length <= 1 ? 'parked' : commitWaiting(run, n, tenant, batch.slice(0, batch.length >> 1));
  }
};

/**
 * Applies the next events of a parked tenant that the generation has already passed. Reads the parked document after the
 * control state, like all documents: another process may have freed the tenant since it was listed, and its events must
 * not be applied twice.
 */
const retryNext = async (run: ProjectionRun, tenantId: string): Promise<Outcome> => {
  const { to, n } = await run.generation.control();
  const [parked] = await run.generation.load([parkedKey(tenantId)]);
  if (parked === undefined) return 'free';
  const tenant = parked as unknown as ParkedTenant;
  const waiting = upTo(run.log.readTenant(tenantId, { after: tenant.after }), to?.position ?? '');
  for await (const due of waiting) return commitWaiting(run, n, tenant, batchOf(due, run.streams));
  return commitWaiting(run, n, tenant, []);
};

const retryParked = async (
  run: ProjectionRun,
  tenantId: string,
  between: () => Promise<void>,
): Promise<void> => {
  for (;;) {
    const outcome = await retryNext(run, tenantId);
    if (outcome === 'free' || outcome === 'parked') return;
    await between();
  }
};

/**
 * Retries the tenants that another version of the program parked and may have parked wrongly, those whose event has been
 * set aside, and those that the operator wants retried. Each continues where it is, so between two commits the
 * generation may be projected further.
 */
export const retryDue = async (
  run: ProjectionRun,
  isRequested: (tenantId: string) => boolean = () => false,
  between: () => Promise<void> = async () => undefined,
): Promise<void> => {
  const { event, gapBefore } = run.setAside;
  const isSetAside = ({ cause, tenant_id, event_id }: ParkedTenant): boolean =>
    (cause === 'missing_events' ? gapBefore : event)(run.projector.name, tenant_id, event_id);
  const isDue = (tenant: ParkedTenant): boolean =>
    isRequested(tenant.tenant_id) || tenant.program !== run.program || isSetAside(tenant);
  for await (const tenant of parkedTenants(run.generation))
    if (isDue(tenant)) {
      await retryParked(run, tenant.tenant_id, between);
      await between();
    }
};
