import { join } from 'node:path';
import { findLogs, walkLogs, type LogFilter } from '../../projections/log-pages';
import { listEntityTypes, logs } from '../../projections/logs';
import type { Collection, Query, Reader, Selection } from '../../projections/projector';
import { borderIn, countIn, findIn, lyingIn } from '../../src/read-models/sqlite/tables';
import { openForReading } from '../../src/sqlite/database';
import { freshFolder } from '../support/folders';
import { filledLog, TENANT } from '../support/log-rows';

const SIZE = 20;

describe('the questions about logs', () => {
  const path = join(freshFolder(), 'logs_v1_1.db');
  const generation = filledLog(path);
  const db = openForReading(path);
  afterAll(() => {
    generation.close();
    db.close();
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

  /** The plans of everything that a question asks of the rows, each once. */
  const plansOf = async (ask: (reader: Reader) => Promise<unknown>): Promise<readonly string[]> => {
    const plans = new Set<string>();
    const reader: Reader = {
      get: generation.get,
      find: (tenantId, name, query: Query) => {
        plans.add(planOf(findIn(collectionOf(name), query)).join('; '));
        return generation.find(tenantId, name, query);
      },
      count: (tenantId, name, selection: Selection) => {
        plans.add(planOf(countIn(collectionOf(name), selection)).join('; '));
        return generation.count(tenantId, name, selection);
      },
      countBefore: (tenantId, name, line, value) => {
        const sql = borderIn(collectionOf(name), line);
        plans.add(planOf({ sql, values: [...(line.equal ?? []), 1] }).join('; '));
        return generation.countBefore(tenantId, name, line, value);
      },
    };
    await ask(reader);
    return [...plans];
  };

  const page =
    (filter: LogFilter, number = 3, olderThan?: string) =>
    (reader: Reader) =>
      findLogs(reader, TENANT, {
        filter,
        page: number,
        size: SIZE,
        ...(olderThan === undefined ? {} : { olderThan }),
      });

  const BY_NUMBER =
    'SEARCH docs_rows USING INDEX rows_by_number (tenant=? AND field_number>? AND field_number<?)';
  const ONE_BY_NUMBER = 'SEARCH docs_rows USING INDEX rows_by_number (tenant=? AND field_number=?)';
  const ONE_BY_TYPE =
    'SEARCH docs_rows USING INDEX rows_by_type (tenant=? AND field_entity_type=? AND field_type_number=?)';
  const BY_TYPE =
    'SEARCH docs_rows USING INDEX rows_by_type (tenant=? AND field_entity_type=? AND field_type_number>? AND field_type_number<?)';
  const BY_ENTITY =
    'SEARCH docs_rows USING INDEX rows_by_entity (tenant=? AND field_entity_id=? AND field_number>? AND field_number<?)';
  const COUNT_ENTITY = BY_ENTITY.replace('INDEX', 'COVERING INDEX');
  const dates = { start: '2026-01-01T01:00:00.000Z', end: '2026-01-01T06:00:00.000Z' };
  const cursor = String(300).padStart(16, '0');

  it.each<[string, (reader: Reader) => Promise<unknown>, readonly string[]]>([
    ['a plain page', page({}), [BY_NUMBER]],
    ['a page after a cursor', page({}, 1, cursor), [BY_NUMBER, ONE_BY_NUMBER]],
    ['a page by dates', page(dates), [ONE_BY_NUMBER, BY_NUMBER]],
    ['a page by type', page({ entityType: 'token' }), [BY_TYPE]],
    ['a page by type after a cursor', page({ entityType: 'token' }, 1, cursor), [BY_TYPE, ONE_BY_TYPE]],
    ['a page by type and dates', page({ entityType: 'token', ...dates }), [ONE_BY_TYPE, BY_TYPE]],
    ['a page by entity', page({ entityId: 'e4' }, 2), [COUNT_ENTITY, BY_ENTITY]],
    [
      'a page by entity, type and dates after a cursor',
      page({ entityId: 'e4', entityType: 'token', ...dates }, 1, cursor),
      [ONE_BY_NUMBER, COUNT_ENTITY, BY_NUMBER, BY_ENTITY],
    ],
    ['a walk', (reader) => walkLogs(reader, TENANT, dates, SIZE), [ONE_BY_NUMBER, BY_NUMBER]],
    ['a walk by type', (reader) => walkLogs(reader, TENANT, { entityType: 'card' }, SIZE), [BY_TYPE]],
    ['a walk by entity', (reader) => walkLogs(reader, TENANT, { entityId: 'e4' }, SIZE), [BY_ENTITY]],
    [
      'the entity types',
      (reader) => listEntityTypes(reader, TENANT),
      ['SEARCH docs_types USING PRIMARY KEY (tenant=?)'],
    ],
  ])('seek in an index and sort nothing: %s', async (_, ask, expected) => {
    expect(await plansOf(ask)).toEqual(expected);
  });

  it.each<[string, string]>([
    ['rows', 'SEARCH d USING INDEX docs_rows_key (tenant=? AND key>? AND key<?)'],
    ['types', 'SEARCH d USING PRIMARY KEY (tenant=? AND key>? AND key<?)'],
  ])('seek a stretch of one tenant in %s', (name, plan) => {
    const { rows, values } = lyingIn(collectionOf(name), { after: '7 a', upTo: '7 b c' }, 1);
    expect(values).toEqual([1, 'a', 'b c']);
    const steps = db.prepare(`EXPLAIN QUERY PLAN SELECT d.document ${rows}`).all(...values);
    expect(steps.map((step) => (step as { detail: string }).detail)).toEqual([
      plan,
      'SEARCH t USING INTEGER PRIMARY KEY (rowid=?)',
    ]);
  });
});
