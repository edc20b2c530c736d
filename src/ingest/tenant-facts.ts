import { logKey } from '../../projections/logs';
import type { Tenant } from '../domain/tenant';
import type { NewEvent } from '../event-log/event-log';
import type { ReadModelSet } from '../read-models/read-models';

/** What facts of a tenant are checked against, however they arrive. */

export interface TenantFact {
  readonly tenantId: string;
  readonly event: NewEvent;
}

export interface ShownFacts<F> {
  /** By tenant, the last revision of its activity stream that the read models contain, or -1. */
  readonly revisions: ReadonlyMap<string, number>;
  /** Those of the facts that they contain: at least all up to that revision. */
  readonly there: ReadonlySet<F>;
}

/** So many are looked up at a time. */
const LOOKUPS = 100;

/** Reads the revisions first, so that the look-ups see at least the events up to them. */
export const shownFacts = async <F extends TenantFact>(
  reader: Pick<ReadModelSet, 'load' | 'progress'>,
  facts: readonly F[],
  between: () => Promise<unknown> = async () => undefined,
): Promise<ShownFacts<F>> => {
  const tenantIds = [...new Set(facts.map(({ tenantId }) => tenantId))];
  const progress = await reader.progress(tenantIds);
  const revisions = new Map(tenantIds.map((tenantId, i) => [tenantId, progress[i]?.activity ?? -1]));
  const asked = facts.filter(({ tenantId }) => revisions.get(tenantId) !== -1);
  const there = new Set<F>();
  for (let from = 0; from < asked.length; from += LOOKUPS) {
    await between();
    const some = asked.slice(from, from + LOOKUPS);
    const rows = await reader.load(some.map(({ tenantId, event }) => logKey(tenantId, event.id)));
    for (const [i, fact] of some.entries()) if (rows[i] !== undefined) there.add(fact);
  }
  return { revisions, there };
};

/** Why a tenant cannot take facts. */
export const tenantRefusal = (status: Tenant['status'], tenantId: string) => {
  if (status === 'active') return undefined;
  return status === 'absent'
    ? ({ code: 'unknown_tenant', reason: `tenant ${tenantId} is unknown` } as const)
    : ({ code: 'deleted_tenant', reason: `tenant ${tenantId} is deleted` } as const);
};
