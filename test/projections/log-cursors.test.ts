import { findLogs, numberIn, type LogFilter } from '../../projections/log-pages';
import type { LogRow } from '../../projections/logs';
import type { Reader } from '../../projections/projector';
import { filledLog, ROWS, TENANT } from '../support/log-rows';

const SIZE = 20;

describe.each<[string, LogFilter]>([
  ['no filter', {}],
  ['a type', { entityType: 'card' }],
  ['an entity', { entityId: 'e4' }],
  ['an entity and its type', { entityId: 'e4', entityType: 'token' }],
  ['dates', { start: '2026-01-01T01:00:00.000Z', end: '2026-01-01T06:00:00.000Z' }],
])('a cursor with %s', (_, filter) => {
  let log: Awaited<ReturnType<typeof filledLog>>;
  beforeAll(async () => {
    log = await filledLog();
  });
  afterAll(() => log.close());
  let searches = 0;
  const reader: Reader = {
    get: (...question) => log.reader.get(...question),
    find: (...question) => log.reader.find(...question),
    countBefore: (...question) => {
      searches += 1;
      return log.reader.countBefore(...question);
    },
  };
  const after = (row: LogRow, olderNumber?: number) =>
    findLogs(reader, TENANT, {
      filter,
      page: 1,
      size: SIZE,
      olderThan: row.position,
      ...(olderNumber === undefined ? {} : { olderNumber }),
    });

  it('gives the same page whether its number is right, wrong or missing', async () => {
    const { rows } = await findLogs(reader, TENANT, { filter, page: 1, size: SIZE });
    const second = await findLogs(reader, TENANT, { filter, page: 2, size: SIZE });
    const last = rows.at(-1) as LogRow;
    const right = numberIn(filter, last);
    for (const number of [
      right,
      undefined,
      right - 1,
      right + 1,
      1,
      0,
      -1,
      ROWS + 1,
      Number.MAX_SAFE_INTEGER,
    ])
      expect(await after(last, number)).toEqual(second);
  });

  it('is found without a search by its number', async () => {
    const { rows } = await findLogs(reader, TENANT, { filter, page: 1, size: SIZE });
    const last = rows.at(-1) as LogRow;
    searches = 0;
    await after(last, numberIn(filter, last));
    const withNumber = searches;
    searches = 0;
    await after(last);
    expect(searches).toBeGreaterThan(withNumber);
  });
});
