import { createHmac, timingSafeEqual } from 'node:crypto';
import { invalid, textParameter, wholeNumberParameter } from '../request/validation';
import { count, described, record, text } from './schema';

/** Opaque cursors into a list, signed so that they are valid only for the tenant and filter they were issued for. */
export interface Cursors {
  make(tenantId: string, filter: string, place: string): string;
  /** The place; undefined: the cursor is forged, truncated, or for another tenant or filter. */
  read(tenantId: string, filter: string, cursor: string): string | undefined;
}

const PARTS = /^([A-Za-z0-9_-]{1,128})\.[A-Za-z0-9_-]{43}$/;

/** Compares the encoded texts: different texts may decode to the same bytes. */
const isEqual = (received: string, expected: string): boolean =>
  received.length === expected.length && timingSafeEqual(Buffer.from(received), Buffer.from(expected));

export const signedCursors = (secret: string): Cursors => {
  const make: Cursors['make'] = (tenantId, filter, place) => {
    const hmac = createHmac('sha256', secret).update(JSON.stringify([tenantId, filter, place]));
    return `${Buffer.from(place).toString('base64url')}.${hmac.digest('base64url')}`;
  };
  return {
    make,
    read: (tenantId, filter, cursor) => {
      const match = PARTS.exec(cursor);
      if (match === null) return undefined;
      const place = Buffer.from(match[1] as string, 'base64url').toString();
      return isEqual(cursor, make(tenantId, filter, place)) ? place : undefined;
    },
  };
};

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
    total_items: described(count, 'Rows that fit the filters; absent where they are not counted.', 1),
    page_number: described(positive, 'The page that this is.', 1),
    page_size: described({ ...positive, maximum: MAX_PAGE_SIZE }, 'Rows of a full page.', 20),
    total_pages: described(count, 'Pages of this size; absent likewise.', 1),
    after: described(text, 'Cursor of the next page, for `start`; absent on the last.'),
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
