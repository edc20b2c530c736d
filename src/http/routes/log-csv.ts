import { findLogs, type LogFilter, type LogPage } from '../../../projections/log-pages';
import { findLog, logView, type LogRow } from '../../../projections/logs';
import { endReason } from '../../audit/event-stream';
import { CSV, csvText } from '../../csv';
import { fault } from '../../fault';
import type { ApiDependencies } from '../context';
import type { RouteRequest, RouteResponse } from '../route';
import { stillAllowed, streamBody } from './stream-body';

/** The same as in JSON. */
const COLUMNS = Object.keys(logView('', {} as LogRow));

/** Each page is read in one go. */
const PAGE_SIZE = 200;

/** JSON, unless the client prefers CSV. */
export const prefersCsv = ({ accepts }: Pick<RouteRequest<unknown>, 'accepts'>): boolean =>
  accepts('application/json', CSV) === CSV;

const linesOf = (tenantId: string, rows: readonly LogRow[]): string =>
  csvText(rows.map((row) => Object.values(logView(tenantId, row))));

/**
 * All rows of a filter, newest first. Only one page is in memory at a time, and rows that arrive meanwhile are left out.
 */
export const logCsv = async (
  filter: LogFilter,
  request: RouteRequest<undefined>,
  dependencies: ApiDependencies,
): Promise<RouteResponse> => {
  const { tenantId, gaveOut } = request;
  const { openStream, nextSlice, stopping } = dependencies.events;
  const whyEnd = endReason(stillAllowed(request, dependencies), stopping);
  const cutOff = (reason: string) => fault('stream_cut_off', `The stream ended early: ${reason}.`);
  const pageAfter = async (row?: LogRow): Promise<LogPage> => {
    await nextSlice(tenantId);
    const { set: reader } = await dependencies.readModels.read();
    // Where another set is live by now, it may have another number.
    const olderThan = row === undefined ? undefined : await findLog(reader, tenantId, row.id);
    if (row !== undefined && olderThan === undefined) throw cutOff('its last row is gone');
    return findLogs(reader, tenantId, { filter, olderThan, page: 1, size: PAGE_SIZE });
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
        if (reason !== undefined) throw cutOff(reason);
      }
    } finally {
      if (given > 0) gaveOut(given);
    }
  };
  const first = await pageAfter();
  const body = streamBody(csvFrom(first), openStream(tenantId, 'export'));
  return { status: 200, type: `${CSV}; charset=utf-8`, body };
};
