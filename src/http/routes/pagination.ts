import { textParameter, wholeNumberParameter, type ValuesOf } from '../query-parameters';
import type { RouteRequest, RouteResponse } from '../route';
import { count, described, positive, record, text } from '../schema';
import { invalid } from '../validation';

const MAX_PAGE_SIZE = 100;
const DEFAULT_PAGE_SIZE = 20;

export const pageParameters = (things: string) => ({
  // Without a declared default, which generated clients would send: some filters refuse it.
  page: {
    ...wholeNumberParameter('The page, from 1, the default; with `start` it counts from there.', undefined),
    example: 1,
  },
  size: wholeNumberParameter(`${things} per page; more than 100 is 100.`, DEFAULT_PAGE_SIZE),
  start: textParameter('A cursor: `after` or `next` of an earlier response.', ''),
});

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

const cursorOf = (place: string): string => Buffer.from(place).toString('base64url');

export const cursorRefused = () => invalid({ start: ['must be a cursor from an earlier response'] });

/** What a cursor stands for. Other texts may decode to the same, but only one is the cursor. */
const placeIn = (cursor: string): string => {
  const place = Buffer.from(cursor, 'base64url').toString();
  if (cursorOf(place) !== cursor) throw cursorRefused();
  return place;
};

/** What the parameters of a page say, and the response with it. */
export const paging = ({
  query: { page = 1, size: wanted, start },
}: RouteRequest<unknown, ValuesOf<ReturnType<typeof pageParameters>>>) => {
  const size = Math.min(wanted, MAX_PAGE_SIZE);
  return {
    page,
    size,
    /** What the cursor `start` stands for. */
    place: start === undefined ? undefined : placeIn(start),
    /** `total` is undefined where it is not counted, and `next`, the place of the next page, on the last one. */
    shown: (data: readonly unknown[], total: number | undefined, next: string | undefined): RouteResponse => {
      const cursor = next === undefined ? undefined : cursorOf(next);
      const pagination = {
        total_items: total,
        page_number: page,
        page_size: size,
        total_pages: total === undefined ? undefined : Math.ceil(total / size),
        after: cursor,
        next: cursor,
      };
      return { body: { pagination, data } };
    },
  };
};
