interface Pending<Tally> {
  readonly tally: Tally;
  /** When it is written, on the monotonic clock. */
  readonly dueAt: number;
}

/**
 * What was counted and is not being written yet, bounded in number, in all and per tenant: a flood must not cost memory,
 * and a single tenant must not crowd out the others. `add` adds one tally to another about the same thing.
 */
export const pendingTallies = <Tally extends { readonly tenantId: string }>(
  idOf: (tally: Tally) => string,
  add: (tally: Tally, more: Tally) => void,
  max: number,
  maxPerTenant: number,
) => {
  const pending = new Map<string, Pending<Tally>>();
  const perTenant = new Map<string, number>();

  const count = ({ tenantId }: Tally, change: 1 | -1): void => {
    const next = (perTenant.get(tenantId) ?? 0) + change;
    if (next === 0) perTenant.delete(tenantId);
    else perTenant.set(tenantId, next);
  };

  return {
    size: (): number => pending.size,
    /** False: there is no room. */
    add: (tally: Tally, dueAt = 0): boolean => {
      const known = pending.get(idOf(tally));
      if (known !== undefined) {
        add(known.tally, tally);
        return true;
      }
      if (pending.size >= max || (perTenant.get(tally.tenantId) ?? 0) >= maxPerTenant) return false;
      pending.set(idOf(tally), { tally, dueAt });
      count(tally, 1);
      return true;
    },
    take: (dueBy = Infinity, atMost = Infinity): readonly Tally[] => {
      const due: Tally[] = [];
      for (const { tally, dueAt } of pending.values()) {
        if (due.length === atMost) break;
        if (dueAt > dueBy) continue;
        pending.delete(idOf(tally));
        count(tally, -1);
        due.push(tally);
      }
      return due;
    },
    nextDueAt: (): number => {
      let next = Infinity;
      for (const { dueAt } of pending.values()) next = Math.min(next, dueAt);
      return next;
    },
  };
};
