import { upTo } from '../event-log/reading';
import { codeOf } from '../fault';
import { batchOf, type Batch } from './batch';
import { foldWaiting, type Retried } from './fold-batch';
import { parkedKey, parkedTenants, type ParkedTenant } from './parked-tenants';
import type { ProjectionRun } from './projection-run';

type Outcome = Retried['outcome'] | 'overtaken';

/** The progress of one retry. */
interface Retry {
  n: number;
  tenant: ParkedTenant;
}

/** Splits the batch in halves if it is too large for one commit. A single event too large leaves the tenant parked. */
const commitWaiting = async (
  run: ProjectionRun,
  retry: Retry,
  batch: Batch,
  last: boolean,
): Promise<Outcome> => {
  const retried = await foldWaiting(run, retry.tenant, batch, last);
  try {
    if (!(await run.generation.commit(retry.n, undefined, retried.writes))) return 'overtaken';
  } catch (error) {
    if (codeOf(error) !== 'commit_too_large') throw error;
    if (batch.length <= 1) return 'parked';
    const half = batch.length >> 1;
    const outcome = await commitWaiting(run, retry, batch.slice(0, half), false);
    return outcome === 'more' ? commitWaiting(run, retry, batch.slice(half), last) : outcome;
  }
  retry.n += 1;
  retry.tenant = retried.tenant;
  return retried.outcome;
};

/**
 * Reads the parked document after the control state, like all documents: another process may have freed the tenant since
 * it was listed, and its events must not be applied twice.
 */
const retryOnce = async (run: ProjectionRun, tenantId: string): Promise<Outcome> => {
  const { to, n } = await run.generation.control();
  const [parked] = await run.generation.load([parkedKey(tenantId)]);
  if (parked === undefined) return 'free';
  const retry: Retry = { n, tenant: parked as unknown as ParkedTenant };
  let outcome: Outcome = 'more';
  // The tenant's events that the generation has already passed.
  const waiting = upTo(run.log.readTenant(tenantId, { after: retry.tenant.after }), to?.position ?? '');
  for await (const due of waiting) {
    outcome = await commitWaiting(run, retry, batchOf(due, run.streams), false);
    if (outcome !== 'more') break;
  }
  if (outcome === 'more') outcome = await commitWaiting(run, retry, [], true);
  if (outcome !== 'overtaken') run.parkedChanged?.();
  return outcome;
};

/** Retries a parked tenant. Returns whether it is no longer parked. */
export const retryParked = async (run: ProjectionRun, tenantId: string): Promise<boolean> => {
  let outcome = await retryOnce(run, tenantId);
  while (outcome === 'overtaken') outcome = await retryOnce(run, tenantId);
  return outcome === 'free';
};

/**
 * Retries the tenants that another version of the program parked and may have parked wrongly, those whose event has been
 * set aside, and those that the operator wants retried.
 */
export const retryDue = async (
  run: ProjectionRun,
  isRequested: (tenantId: string) => boolean = () => false,
): Promise<void> => {
  const { event, gapBefore } = run.setAside;
  const isSetAside = ({ cause, tenant_id, event_id }: ParkedTenant): boolean =>
    (cause === 'missing_events' ? gapBefore : event)(run.projector.name, tenant_id, event_id);
  const isDue = (tenant: ParkedTenant): boolean =>
    isRequested(tenant.tenant_id) || tenant.program !== run.program || isSetAside(tenant);
  for await (const tenant of parkedTenants(run.generation))
    if (isDue(tenant)) await retryParked(run, tenant.tenant_id);
};
