import { invalid, textParameter, wholeNumberParameter } from '../request/validation';
import type { Cursors } from './cursor';
import { count, described, record, text } from './schema';

const MAX_PAGE_SIZE = 100;
const DEFAULT_PAGE_SIZE = 20;

export const pageParameters = (things: string) => ({
  page: wholeNumberParameter(
    'The page, from 1; with `start` it counts from there.',
    1,
    Number.MAX_SAFE_INTEGER,
  ),
  size: wholeNumberParameter(
    `${things} per page; more than ${MAX_PAGE_SIZE} is ${MAX_PAGE_SIZE}.`,
    DEFAULT_PAGE_SIZE,
    MAX_PAGE_SIZE,
  ),
  start: textParameter('A cursor: `after` or `next` of an earlier answer to the same filters.', ''),
});

/** The place that the cursor `start` encodes. */
export const placeOf = (
  start: string | undefined,
  cursors: Cursors,
  tenantId: string,
  filter: string,
): string | undefined => {
  if (start === undefined) return undefined;
  const place = cursors.read(tenantId, filter, start);
  if (place === undefined)
    throw invalid({ start: ['must be a cursor from an earlier answer to the same filters'] });
  return place;
};

const positive = { type: 'integer', format: 'int64', minimum: 1 };

export const paginationSchema = record(
  'Pagination',
  {
    total_items: described(count, 'Rows that fit the filters; left out where those are not counted.', 1),
    page_number: described(positive, 'The page that this is.', 1),
    page_size: described({ ...positive, maximum: MAX_PAGE_SIZE }, 'Rows of a full page.', 20),
    total_pages: described(count, 'Pages of this size; left out likewise.', 1),
    after: described(text, 'Left out on the last page: `start` of the page after this one.'),
    next: described(text, 'The same as `after`.'),
  },
  ['total_items', 'total_pages', 'after', 'next'],
);

export interface Paged {
  readonly page: number;
  readonly size: number;
  /** Undefined: it is not counted. */
  readonly total: number | undefined;
  /** The cursor of the next page, if there is one. */
  readonly next: string | undefined;
}

export const paginationOf = ({ page, size, total, next }: Paged) => ({
  total_items: total,
  page_number: page,
  page_size: size,
  total_pages: total === undefined ? undefined : Math.ceil(total / size),
  after: next,
  next,
});
