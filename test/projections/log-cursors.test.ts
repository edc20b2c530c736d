import { findLogs, numberIn, type LogFilter } from '../../projections/log-pages';
import type { LogRow } from '../../projections/logs';
import type { Reader } from '../../projections/projector';
import { filledLog, ROWS, TENANT } from '../support/log-rows';

const SIZE = 20;

let log: Awaited<ReturnType<typeof filledLog>>;
beforeAll(async () => {
  log = await filledLog();
});
afterAll(() => log.close());

describe.each<[string, LogFilter]>([
  ['no filter', {}],
  ['a type', { entityType: 'card' }],
  ['an entity', { entityId: 'e4' }],
  ['an entity and its type', { entityId: 'e4', entityType: 'token' }],
  ['dates', { start: '2026-01-01T01:00:00.000Z', end: '2026-01-01T06:00:00.000Z' }],
])('a cursor with %s', (_, filter) => {
  let searches = 0;
  let reader: Reader;
  beforeAll(() => {
    const { countBefore } = log.reader;
    reader = {
      ...log.reader,
      countBefore: (...question) => {
        searches += 1;
        return countBefore(...question);
      },
    };
  });
  const after = ({ id }: Pick<LogRow, 'id'>, number: number) =>
    findLogs(reader, TENANT, { filter, page: 1, size: SIZE, olderThan: { id, number } });

  it('returns the same page whether its number is right or wrong', async () => {
    const { rows } = await findLogs(reader, TENANT, { filter, page: 1, size: SIZE });
    const second = await findLogs(reader, TENANT, { filter, page: 2, size: SIZE });
    const last = rows.at(-1) as LogRow;
    const right = numberIn(filter, last);
    for (const number of [right, right - 1, right + 1, 1, 0, -1, ROWS + 1, Number.MAX_SAFE_INTEGER])
      expect(await after(last, number)).toEqual(second);
  });

  it('is located without a search', async () => {
    searches = 0;
    const { rows } = await findLogs(reader, TENANT, { filter, page: 1, size: SIZE });
    const last = rows.at(-1) as LogRow;
    const forDates = searches;
    searches = 0;
    await after(last, numberIn(filter, last));
    expect(searches).toBe(forDates);
  });

  it('goes on by its number in a generation without its row', async () => {
    const { rows } = await findLogs(reader, TENANT, { filter, page: 1, size: SIZE });
    const second = await findLogs(reader, TENANT, { filter, page: 2, size: SIZE });
    const missing = { id: '00000000-0000-4000-8000-00000000dead' };
    expect(await after(missing, numberIn(filter, rows.at(-1) as LogRow))).toEqual(second);
  });
});

it('a page of an entity that gets a second type meanwhile has its rows from before', async () => {
  const indexes: (string | undefined)[] = [];
  const reader = {
    // The head of the type was written after the entity's was read.
    get: async (_: string, collection: string) =>
      collection === 'entities' ? { count: 3, type: 'token' } : { count: 5 },
    find: async (_: string, __: string, { index, limit }: { index?: string; limit: number }) => {
      indexes.push(index);
      return Array.from({ length: limit }, () => ({}));
    },
  } as unknown as Reader;
  const filter = { entityId: 'e', entityType: 'token' };
  expect((await findLogs(reader, TENANT, { filter, page: 1, size: 9 })).rows).toHaveLength(3);
  expect(indexes).toEqual(['by_entity']);
});

describe('rare rows among many others', () => {
  const MANY = 2_500;
  let many: typeof log;
  beforeAll(async () => {
    many = await filledLog(MANY);
  });
  afterAll(() => many.close());

  it('are all found by continuing, although a page scans a bounded number of rows', async () => {
    let lookedAt = 0;
    const reader: Reader = {
      ...many.reader,
      find: async (...question) => {
        const rows = await many.reader.find(...question);
        lookedAt += rows.length;
        return rows;
      },
    };
    const filter: LogFilter = { entityType: 'card', operation: 'never' };
    let pages = 0;
    for (let last: LogRow | undefined, isFirst = true; isFirst || last !== undefined; isFirst = false) {
      lookedAt = 0;
      const after = last === undefined ? {} : { olderThan: { id: last.id, number: numberIn(filter, last) } };
      const page = await findLogs(reader, TENANT, { filter, page: 1, size: SIZE, ...after });
      expect(page.rows).toEqual([]);
      expect(lookedAt).toBeLessThanOrEqual(1_001);
      last = page.last;
      pages += 1;
    }
    expect(pages).toBe(2);
  });

  it('are found completely, page after page', async () => {
    const filter: LogFilter = { traceId: 'trace-1', entityType: 'card' };
    const seen: string[] = [];
    for (let last: LogRow | undefined, isFirst = true; isFirst || last !== undefined; isFirst = false) {
      const after = last === undefined ? {} : { olderThan: { id: last.id, number: numberIn(filter, last) } };
      const page = await findLogs(many.reader, TENANT, { filter, page: 1, size: SIZE, ...after });
      seen.push(...page.rows.map(({ position }) => position));
      last = page.last;
    }
    const expected = Array.from({ length: MANY }, (_, at) => at).filter((at) => at % 3 === 1 && at % 2 === 1);
    expect(seen).toHaveLength(expected.length);
    expect(seen).toEqual(seen.toSorted().toReversed());
  });
});
