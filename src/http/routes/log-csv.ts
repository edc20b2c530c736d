import { findLogs, type LogFilter, type LogPage } from '../../../projections/log-pages';
import { logView, type LogRow } from '../../../projections/logs';
import { endReason } from '../../audit/event-stream';
import { csvText } from '../../csv';
import { fault } from '../../fault';
import type { ApiDependencies } from '../context';
import { route, type RouteRequest } from '../route';
import { sampleOf, text } from '../schema';
import { logFilterOf, logFilters, logSchema } from './logs';
import { stillAllowed, streamBody } from './stream-body';

/** The columns are the members of a row in JSON. */
const COLUMNS = Object.keys(logView('', {} as LogRow));

/** Each page is read in one go. */
const PAGE_SIZE = 200;

const linesOf = (tenantId: string, rows: readonly LogRow[]): string =>
  csvText(rows.map((row) => Object.values(logView(tenantId, row))));

/**
 * All rows of a filter, newest first. Only one page is in memory at a time, and rows that arrive meanwhile are left out.
 */
const logCsv = async (filter: LogFilter, request: RouteRequest<undefined>, dependencies: ApiDependencies) => {
  const { tenantId, read, gaveOut } = request;
  const { openStream, nextSlice, stopping } = dependencies.events;
  const whyEnd = endReason(stillAllowed(request, dependencies), stopping);
  /** Rows keep their numbers, also where another set is live by now. */
  const pageAfter = async (olderThan?: LogRow): Promise<LogPage> => {
    await nextSlice(tenantId);
    return read((reader) => findLogs(reader, tenantId, { filter, olderThan, page: 1, size: PAGE_SIZE }));
  };
  const csvFrom = async function* (first: LogPage): AsyncGenerator<string> {
    let given = 0;
    try {
      yield csvText([COLUMNS]);
      for (let page = first; ; page = await pageAfter(page.last)) {
        given += page.rows.length;
        if (page.rows.length > 0) yield linesOf(tenantId, page.rows);
        if (page.last === undefined) return;
        const reason = await whyEnd();
        // Cut off without the end of the body: CSV has no place to say that it is not complete.
        if (reason !== undefined) throw fault('stream_cut_off', `The stream ended early: ${reason}.`);
      }
    } finally {
      if (given > 0) gaveOut(given);
    }
  };
  const first = await pageAfter();
  return streamBody(csvFrom(first), openStream(tenantId, 'export'));
};

const example = sampleOf(logSchema) as object;

/** Apart from `/logs`, so that a generated client has one type for the response of each. */
export const exportLogs = route({
  method: 'get',
  path: '/logs/csv',
  summary: 'Export logs as CSV',
  permission: 'log:read',
  query: logFilters,
  response: {
    description: 'All rows that match, newest first, as a stream.',
    media: {
      'text/csv': { schema: text, example: csvText([Object.keys(example), Object.values(example)]) },
    },
  },
  reads: true,
  handle: async (request, dependencies) => ({
    type: 'text/csv',
    body: await logCsv(logFilterOf(request.query), request, dependencies),
  }),
});
