import { findLogs, type LogFilter, type LogPage } from '../../projections/log-pages';
import { logs, type LogRow } from '../../projections/logs';
import type { Reader } from '../../projections/projector';
import { TENANT } from './given';
import { loggedOf, projected } from './history';

const SIZE = 20;
const ROWS = 2_500;

/** One row per minute, alternating between two types and among five entities, each under both types. */
const events = loggedOf(
  Array.from({ length: ROWS }, (_, at) => ({
    tenantId: TENANT,
    type: at % 2 === 0 ? 'TokenRead' : 'CardRead',
    data: { entityId: `e${at % 5}` },
    recordedMs: Date.UTC(2026, 0, 1, 0, at + 1),
    metadata: { actor: { type: 'user', id: TENANT }, traceId: `trace-${at % 3}` },
  })),
);

describe('pages', () => {
  let lookedAt = 0;
  /** By their numbers. */
  let numbered = 0;
  let reader: Reader;
  beforeAll(async () => {
    const set = await projected(logs, events);
    reader = {
      ...set,
      find: async (...question) => {
        const rows = await set.find(...question);
        lookedAt += rows.length;
        return rows;
      },
      at: async (...question) => {
        const rows = await set.at(...question);
        numbered += rows.length;
        return rows;
      },
    };
  });

  const walk = async (filter: LogFilter) => {
    const pages: { readonly rows: readonly LogRow[]; readonly lookedAt: number }[] = [];
    for (let olderThan: LogRow | undefined; ;) {
      lookedAt = 0;
      const page: LogPage = await findLogs(reader, TENANT, { filter, page: 1, size: SIZE, olderThan });
      expect(page.total).toBeUndefined();
      pages.push({ rows: page.rows, lookedAt });
      if (page.last === undefined) return pages;
      olderThan = page.last;
    }
  };

  it.each<[string, LogFilter, number]>([
    ['an entity', { entity_id: 'e4' }, ROWS / 5],
    ['an actor', { actor_id: TENANT }, ROWS],
    ['an operation', { operation: 'read' }, ROWS],
    ['a trace', { trace_id: 'trace-1' }, Math.floor(ROWS / 3)],
    ['a source', { source: 'fact' }, ROWS],
  ])('are ranges of numbers, at any place, for one filter alone: %s', async (_, filter, total) => {
    const last = Math.ceil(total / SIZE);
    for (const page of [1, 7, last]) {
      lookedAt = 0;
      numbered = 0;
      const found = await findLogs(reader, TENANT, { filter, page, size: SIZE });
      expect([found.total, found.last === undefined]).toEqual([total, page === last]);
      expect([lookedAt, numbered]).toEqual([0, found.rows.length]);
      expect(found.rows).toHaveLength(page === last ? total - (last - 1) * SIZE : SIZE);
    }
  });

  it('look at a thousand rows at most, and may be empty although there are more', async () => {
    const pages = await walk({ operation: 'read', entity_type: 'never' });
    expect(pages).toEqual([1_000, 1_000, ROWS - 2_000].map((looked) => ({ rows: [], lookedAt: looked })));
  });

  it('follow the entity if there is one, so that few others are looked at', async () => {
    const [page] = await walk({ operation: 'read', entity_id: 'e4', entity_type: 'card' });
    expect(page?.lookedAt).toBe(SIZE + 1);
  });

  it('have every row together', async () => {
    const pages = await walk({ trace_id: 'trace-1', entity_type: 'card' });
    const seen = pages.flatMap(({ rows }) => rows.map(({ position }) => position));
    const expected = Array.from({ length: ROWS }, (_, at) => at).filter((at) => at % 3 === 1 && at % 2 === 1);
    expect(seen).toHaveLength(expected.length);
    expect(seen).toEqual(seen.toSorted().toReversed());
  });
});
