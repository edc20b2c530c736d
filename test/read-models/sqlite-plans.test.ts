import { findLogs, type LogFilter } from '../../projections/log-pages';
import { listEntityTypes, logs } from '../../projections/logs';
import type { Collection, Query, Reader } from '../../projections/projector';
import { fieldIn, findIn, parkedIn } from '../../src/read-models/sqlite/tables';
import { openForReading, type Database } from '../../src/sqlite/database';
import { filledLog, TENANT } from '../support/log-rows';

const SIZE = 20;

describe('queries of logs', () => {
  let log: Awaited<ReturnType<typeof filledLog>>;
  let db: Database;
  beforeAll(async () => {
    log = await filledLog();
    db = openForReading(log.path);
  });
  afterAll(async () => {
    db.close();
    await log.close();
  });

  const collectionOf = (name: string): Collection =>
    logs.collections.find((collection) => collection.name === name) as Collection;

  const planOf = ({
    sql,
    values,
  }: {
    sql: string;
    values: readonly (string | number)[];
  }): readonly string[] =>
    db
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all(1, ...values)
      .map((row) => (row as { detail: string }).detail);

  /** The plans of all statements of a query, each once. */
  const plansOf = async (ask: (reader: Reader) => Promise<unknown>): Promise<readonly string[]> => {
    const plans = new Set<string>();
    const reader: Reader = {
      get: log.reader.get,
      find: (tenantId, name, query: Query) => {
        plans.add(planOf(findIn(collectionOf(name), query)).join('; '));
        return log.reader.find(tenantId, name, query);
      },
      countsBefore: (tenantId, name, line, values) => {
        const [collection, { index, equal }] = [collectionOf(name), line];
        if (values.length > 0) {
          plans.add(planOf(findIn(collection, { ...line, from: 1, descending: true, limit: 1 })).join('; '));
          plans.add(planOf({ sql: fieldIn(collection, index, 'number'), values: [...equal, 1] }).join('; '));
        }
        return log.reader.countsBefore(tenantId, name, line, values);
      },
    };
    await ask(reader);
    return [...plans];
  };

  const page =
    (filter: LogFilter, number = 3, olderThan?: { readonly number: number }) =>
    (reader: Reader) =>
      findLogs(reader, TENANT, { filter, page: number, size: SIZE, olderThan });

  const seek = (index: string, tests: string): string =>
    `SEARCH docs_rows USING INDEX rows_${index} (tenant=? AND ${tests})`;
  const range = (number: string): string => `field_${number}>? AND field_${number}<?`;
  /** A page of a numbered index, and the two lookups of a search in it. */
  const numbered = (index: string, tests: string, number: string) => ({
    page: seek(index, `${tests}${range(number)}`),
    search: [seek(index, `${tests}field_${number}>?`), seek(index, `${tests}field_${number}=?`)],
  });
  const all = numbered('by_number', '', 'number');
  const ofType = numbered('by_type', 'field_entity_type=? AND ', 'type_number');
  const ofEntity = numbered('by_entity', 'field_entity_id=? AND ', 'entity_number');
  const ofBoth = numbered(
    'by_typed_entity',
    'field_entity_id=? AND field_entity_type=? AND ',
    'typed_entity_number',
  );
  const dates = { start: '2026-01-01T01:00:00.000Z', end: '2026-01-01T06:00:00.000Z' };
  const cursor = { number: 300 };
  const [typed, entity] = [{ entityType: 'token' }, { entityId: 'e4' }];
  const both = { ...typed, ...entity };

  it.each<[string, (reader: Reader) => Promise<unknown>, readonly string[]]>([
    ['a plain page', page({}), [all.page]],
    ['a page after a cursor', page({}, 1, cursor), [all.page]],
    ['a page by dates', page(dates), [...all.search, all.page]],
    ['a page by type', page(typed), [ofType.page]],
    ['a page by type after a cursor', page(typed, 1, cursor), [...ofType.search, ofType.page]],
    [
      'a page by type and dates',
      page({ ...typed, ...dates }),
      [...all.search, ...ofType.search, ofType.page],
    ],
    ['a page by entity', page(entity, 2), [ofEntity.page]],
    [
      'a page by entity and dates',
      page({ ...entity, ...dates }, 1),
      [...all.search, ...ofEntity.search, ofEntity.page],
    ],
    ['a page by entity and type', page(both, 2), [ofBoth.page]],
    ['the same after a cursor', page(both, 1, cursor), [...ofBoth.search, ofBoth.page]],
    [
      'a page by trace',
      page({ traceId: 'trace-1' }, 1),
      [seek('by_trace', `field_trace_id=? AND ${range('number')}`)],
    ],
    [
      'a page by actor',
      page({ actorId: TENANT }, 1),
      [seek('by_actor', `field_actor_id=? AND ${range('number')}`)],
    ],
    [
      'a page by operation',
      page({ operation: 'read' }, 1),
      [seek('by_operation', `field_operation=? AND ${range('number')}`)],
    ],
    ['the entity types', (reader) => listEntityTypes(reader, TENANT), []],
  ])('seek in an index without sorting: %s', async (_, ask, expected) => {
    expect(await plansOf(ask)).toEqual(expected);
  });

  it.each(['>', '>='] as const)('find parked tenants (%s) without scanning all tenants', (comparison) => {
    const plan = db
      .prepare(`EXPLAIN QUERY PLAN ${parkedIn(comparison)}`)
      .all('', '', 1)
      .map((row) => (row as { detail: string }).detail);
    expect(plan).toEqual([
      'SCAN d',
      expect.stringMatching(/^SEARCH t USING INTEGER PRIMARY KEY/),
      expect.any(String),
    ]);
  });
});
