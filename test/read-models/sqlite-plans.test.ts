import { findLogs, type LogFilter, type SeenRow } from '../../projections/log-pages';
import { listEntityTypes, logs } from '../../projections/logs';
import type { Collection, Query, Reader } from '../../projections/projector';
import { monotonicValueIn, findIn, sequenceEndsIn, parkedIn } from '../../src/read-models/sqlite/tables';
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
      countBefore: (tenantId, name, part, value) => {
        const sql = monotonicValueIn(collectionOf(name), part);
        plans.add(planOf({ sql, values: [...(part.equal ?? []), 1] }).join('; '));
        return log.reader.countBefore(tenantId, name, part, value);
      },
      countsBefore: log.reader.countsBefore,
      sequenceEnds: log.reader.sequenceEnds,
    };
    await ask(reader);
    return [...plans];
  };

  const page =
    (filter: LogFilter, number = 3, olderThan?: SeenRow) =>
    (reader: Reader) =>
      findLogs(reader, TENANT, {
        filter,
        page: number,
        size: SIZE,
        ...(olderThan === undefined ? {} : { olderThan }),
      });

  const seek = (index: string, tests: string): string =>
    `SEARCH docs_rows USING INDEX rows_${index} (tenant=? AND ${tests})`;
  const range = (number: string): string => `field_${number}>? AND field_${number}<?`;
  const BY_NUMBER = seek('by_number', range('number'));
  const ONE_BY_NUMBER = seek('by_number', 'field_number=?');
  const OF_TYPE = 'field_entity_type=? AND ';
  const BY_TYPE = seek('by_type', `${OF_TYPE}${range('type_number')}`);
  const ONE_BY_TYPE = seek('by_type', `${OF_TYPE}field_type_number=?`);
  const OF_ENTITY = 'field_entity_id=? AND ';
  const BY_ENTITY = seek('by_entity', `${OF_ENTITY}${range('entity_number')}`);
  const ONE_BY_ENTITY = seek('by_entity', `${OF_ENTITY}field_entity_number=?`);
  const TYPED = `${OF_ENTITY}${OF_TYPE}`;
  const BY_TYPED_ENTITY = seek('by_typed_entity', `${TYPED}${range('typed_entity_number')}`);
  const ONE_BY_TYPED_ENTITY = seek('by_typed_entity', `${TYPED}field_typed_entity_number=?`);
  const dates = { start: '2026-01-01T01:00:00.000Z', end: '2026-01-01T06:00:00.000Z' };
  const cursor = { id: 'unknown', number: 300 };

  it.each<[string, (reader: Reader) => Promise<unknown>, readonly string[]]>([
    ['a plain page', page({}), [BY_NUMBER]],
    ['a page after a cursor', page({}, 1, cursor), [BY_NUMBER]],
    ['a page by dates', page(dates), [ONE_BY_NUMBER, BY_NUMBER]],
    ['a page by type', page({ entityType: 'token' }), [BY_TYPE]],
    ['a page by type after a cursor', page({ entityType: 'token' }, 1, cursor), [BY_TYPE]],
    ['a page by type and dates', page({ entityType: 'token', ...dates }), [ONE_BY_TYPE, BY_TYPE]],
    ['a page by entity', page({ entityId: 'e4' }, 2), [BY_ENTITY]],
    ['a page by entity and dates', page({ entityId: 'e4', ...dates }, 1), [ONE_BY_ENTITY, BY_ENTITY]],
    [
      'the last page by an entity and its type',
      page({ entityId: 'e4', entityType: 'token' }),
      [BY_ENTITY, BY_TYPED_ENTITY],
    ],
    [
      'a page by entity, type and dates after a cursor',
      page({ entityId: 'e4', entityType: 'token', ...dates }, 1, cursor),
      [ONE_BY_ENTITY, ONE_BY_TYPED_ENTITY, BY_TYPED_ENTITY],
    ],
    ['the entity types', (reader) => listEntityTypes(reader, TENANT), []],
  ])('seek in an index without sorting: %s', async (_, ask, expected) => {
    expect(await plansOf(ask)).toEqual(expected);
  });

  it('find the values of a sequence by one seek each', () => {
    const plan = planOf({ sql: sequenceEndsIn(collectionOf('rows'), 'by_operation'), values: [10] });
    const seeks = plan.filter((step) => step.includes('docs_rows'));
    expect(seeks).toEqual([
      'SEARCH docs_rows USING COVERING INDEX rows_by_operation (tenant=?)',
      'SEARCH docs_rows USING COVERING INDEX rows_by_operation (tenant=? AND field_operation>?)',
      'SEARCH docs_rows USING COVERING INDEX rows_by_operation (tenant=? AND field_operation=? AND field_operation_number>?)',
    ]);
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
