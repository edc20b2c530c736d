import type { Stores } from '../dependencies';
import { invalid, textParameter, wholeNumberParameter, type ValuesOf } from '../request/validation';
import { ok, type RouteRequest, type RouteResponse } from './route';
import { count, described, record, text } from './schema';

const MAX_PAGE_SIZE = 100;
const DEFAULT_PAGE_SIZE = 20;

export const pageParameters = (things: string) => ({
  page: wholeNumberParameter('The page, from 1; with `start` it counts from there.', 1),
  size: wholeNumberParameter(
    `${things} per page; more than ${MAX_PAGE_SIZE} is ${MAX_PAGE_SIZE}.`,
    DEFAULT_PAGE_SIZE,
    MAX_PAGE_SIZE,
  ),
  start: textParameter('A cursor: `after` or `next` of an earlier response to the same filters.', ''),
});

const positive = { type: 'integer', format: 'int64', minimum: 1 };

export const paginationSchema = record(
  'Pagination',
  {
    total_items: described(count, 'Rows that fit the filters; absent where they are not counted.', 1),
    page_number: described(positive, 'The page that this is.', 1),
    page_size: described({ ...positive, maximum: MAX_PAGE_SIZE }, 'Rows of a full page.', 20),
    total_pages: described(count, 'Pages of this size; absent likewise.', 1),
    after: described(text, 'Cursor of the next page, for `start`; absent on the last.'),
    next: described(text, 'The same as `after`.'),
  },
  ['total_items', 'total_pages', 'after', 'next'],
);

/** What the parameters of a page say, and the response with it. A cursor is valid only for the same tenant and filter. */
export const paging = (
  {
    tenantId,
    query: { page, size, start },
  }: RouteRequest<unknown, ValuesOf<ReturnType<typeof pageParameters>>>,
  { cursors }: Stores,
  filter: string,
) => {
  const place = start === undefined ? undefined : cursors.read(tenantId, filter, start);
  if (start !== undefined && place === undefined)
    throw invalid({ start: ['must be a cursor from an earlier response to the same filters'] });
  return {
    page,
    size,
    /** What the cursor `start` stands for. */
    place,
    /** `total` is undefined where it is not counted, and `next`, the place of the next page, on the last one. */
    shown: (data: readonly unknown[], total: number | undefined, next: string | undefined): RouteResponse => {
      const cursor = next === undefined ? undefined : cursors.make(tenantId, filter, next);
      const pagination = {
        total_items: total,
        page_number: page,
        page_size: size,
        total_pages: total === undefined ? undefined : Math.ceil(total / size),
        after: cursor,
        next: cursor,
      };
      return ok({ pagination, data });
    },
  };
};
