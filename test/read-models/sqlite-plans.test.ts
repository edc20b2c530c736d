import { randomUUID } from 'node:crypto';
import { findLogs, walkLogs, type LogFilter } from '../../projections/log-pages';
import { listEntityTypes, logs } from '../../projections/logs';
import type { Collection, Query, Reader, Selection } from '../../projections/projector';
import { openGenerationWriter } from '../../src/read-models/sqlite/generation-writer';
import { sqliteGeneration } from '../../src/read-models/sqlite/sqlite-generation';
import { countIn, findIn } from '../../src/read-models/sqlite/tables';
import { openForReading } from '../../src/sqlite/database';
import { join } from 'node:path';
import { freshFolder } from '../support/folders';

const TENANT = randomUUID();
const ROWS = 500;
const SIZE = 20;

/** A tenant's log as the projection leaves it, filled by hand: 500 rows, of two types and ten entities. */
const filled = (path: string): void => {
  const writer = openGenerationWriter(path, logs.collections, 'log');
  const write = (
    collection: string,
    key: string,
    document: object,
    fields: readonly (string | number)[],
  ) => ({
    tenantId: TENANT,
    collection,
    key,
    document: JSON.stringify(document),
    fields,
  });
  const rows = Array.from({ length: ROWS }, (_, at) => {
    const [number, type_number] = [at + 1, Math.floor(at / 2) + 1];
    const [entity_type, entity_id] = [at % 2 === 0 ? 'token' : 'card', `e${at % 10}`];
    const created_at = new Date(Date.UTC(2026, 0, 1, 0, number)).toISOString();
    const position = String(number).padStart(16, '0');
    const row = { number, type_number, entity_type, entity_id, created_at, position };
    return write('rows', randomUUID(), row, [number, entity_type, type_number, entity_id]);
  });
  const heads = [
    write('heads', 'tenant', { count: ROWS }, []),
    write('types', 'token', { entity_type: 'token', count: ROWS / 2 }, []),
    write('types', 'card', { entity_type: 'card', count: ROWS / 2 }, []),
  ];
  writer.commit(0, { position: '1', eventId: '1' }, [...rows, ...heads]);
  writer.close();
};

describe('the questions about logs', () => {
  const path = join(freshFolder(), 'logs_v1_1.db');
  filled(path);
  const generation = sqliteGeneration(
    path,
    { projection: 'logs', version: 1, generation: 1 },
    logs.collections,
    () => Promise.reject(new Error('Nothing is written here.')),
  );
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
  const BY_TYPE =
    'SEARCH docs_rows USING INDEX rows_by_type (tenant=? AND field_entity_type=? AND field_type_number>? AND field_type_number<?)';
  const BY_ENTITY =
    'SEARCH docs_rows USING INDEX rows_by_entity (tenant=? AND field_entity_id=? AND field_number>? AND field_number<?)';
  const COUNT_ENTITY = BY_ENTITY.replace('INDEX', 'COVERING INDEX');
  const dates = { start: '2026-01-01T01:00:00.000Z', end: '2026-01-01T06:00:00.000Z' };
  const cursor = String(300).padStart(16, '0');

  it.each<[string, (reader: Reader) => Promise<unknown>, readonly string[]]>([
    ['a plain page', page({}), [BY_NUMBER]],
    ['a page after a cursor', page({}, 1, cursor), [BY_NUMBER]],
    ['a page by dates', page(dates), [BY_NUMBER]],
    ['a page by type', page({ entityType: 'token' }), [BY_TYPE]],
    ['a page by type after a cursor', page({ entityType: 'token' }, 1, cursor), [BY_TYPE]],
    ['a page by type and dates', page({ entityType: 'token', ...dates }), [BY_TYPE]],
    ['a page by entity', page({ entityId: 'e4' }, 2), [COUNT_ENTITY, BY_ENTITY]],
    [
      'a page by entity, type and dates after a cursor',
      page({ entityId: 'e4', entityType: 'token', ...dates }, 1, cursor),
      [BY_NUMBER, COUNT_ENTITY, BY_ENTITY],
    ],
    ['a walk', (reader) => walkLogs(reader, TENANT, dates, SIZE), [BY_NUMBER]],
    ['a walk by type', (reader) => walkLogs(reader, TENANT, { entityType: 'card' }, SIZE), [BY_TYPE]],
    ['a walk by entity', (reader) => walkLogs(reader, TENANT, { entityId: 'e4' }, SIZE), [BY_ENTITY]],
    [
      'the entity types',
      (reader) => listEntityTypes(reader, TENANT),
      ['SEARCH docs_types USING INDEX sqlite_autoindex_docs_types_1 (tenant=?)'],
    ],
  ])('seek in an index and sort nothing: %s', async (_, ask, expected) => {
    expect(await plansOf(ask)).toEqual(expected);
  });
});
