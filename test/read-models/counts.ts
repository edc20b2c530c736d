import type { Document } from '../../projections/projector';
import type { ReadModelSet } from '../../src/read-models/read-models';
import { beforeIn, commitOf, note, ONE, put } from './contract/storage';

/** Adds one to the counter of these tenants, and a note with its number to each. The outcomes are in their order. */
export const add = async (
  set: ReadModelSet,
  tenantIds: readonly string[] = [ONE],
): Promise<'superseded' | readonly ('done' | 'overtaken')[]> => {
  const before = await beforeIn(set, ...tenantIds);
  const outcomes = await set.advance(before, async (unmoved) => {
    const counters = unmoved.map((tenantId) => ({ tenantId, collection: 'counts', key: 'all' }));
    const found: readonly (Document | undefined)[] = await set.load(counters);
    return Promise.all(
      unmoved.map((tenantId, i) => {
        const count = Number(found[i]?.['count'] ?? 0) + 1;
        const shown = { shelf: 'a', place: count, moment: String(count).padStart(6, '0') };
        const puts = [put(tenantId, 'counts', 'all', { count }), note(tenantId, `n${count}`, shown)];
        return commitOf(set, tenantId, (before.get(tenantId)?.tenant ?? 0) + 1, puts);
      }),
    );
  });
  return outcomes === 'superseded' ? outcomes : tenantIds.map((id) => outcomes.get(id) ?? 'overtaken');
};

export const countIn = async (set: ReadModelSet, tenantId = ONE): Promise<number> =>
  Number((await set.get(tenantId, 'counts', 'all'))?.['count'] ?? 0);
