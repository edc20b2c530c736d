import { csvLine } from '../../csv';
import type { RouteRequest, RouteResponse } from './route';

export const CSV = 'text/csv';

/** JSON, unless the client prefers CSV. */
export const prefersCsv = ({ accepts }: Pick<RouteRequest<unknown>, 'accepts'>): boolean =>
  accepts('application/json', CSV) === CSV;

export const csvText = (rows: readonly (readonly unknown[])[]): string =>
  rows.map((row) => `${csvLine(row)}\r\n`).join('');

/** `body`: text, or a stream of it. */
export const csvResponse = (body: unknown): RouteResponse => ({
  status: 200,
  type: `${CSV}; charset=utf-8`,
  body,
});
