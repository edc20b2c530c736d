import { findLogs, numberIn, type LogFilter, type LogPage } from '../../../projections/log-pages';
import { logView, type LogRow } from '../../../projections/logs';
import { threadMs } from '../../async/clock';
import { fault } from '../../fault';
import { csvText } from './csv-response';

import type { Stores } from '../dependencies';
import type { RouteRequest } from './route';
import { logSchema } from './log-schemas';
import { stillAllowed, streamBody } from './stream-body';

const COLUMNS = Object.keys(logSchema['properties'] as object) as (keyof ReturnType<typeof logView>)[];

const PAGE_SIZE = 500;

/** As often as for streams of events: the key may be revoked meanwhile. */
const CHECK_MS = 500;

const linesOf = (tenantId: string, rows: readonly LogRow[]): string =>
  csvText(
    rows.map((row) => {
      const shown = logView(tenantId, row);
      return COLUMNS.map((name) => shown[name]);
    }),
  );

interface CsvSource {
  readonly tenantId: string;
  readonly page: (after?: LogRow) => Promise<LogPage>;
  /** Throws if the caller may no longer read. */
  readonly check: () => Promise<void>;
  readonly gaveOut: (rows: number) => void;
}

async function* csvOf(first: LogPage, { tenantId, page, check, gaveOut }: CsvSource): AsyncGenerator<string> {
  yield csvText([COLUMNS]);
  for (let current = first; ; current = await page(current.last)) {
    gaveOut(current.rows.length);
    if (current.rows.length > 0) yield linesOf(tenantId, current.rows);
    if (current.last === undefined) return;
    await check();
  }
}

/** Cut off without the end of the body: CSV has no place to say that it is not complete. */
const cutOff = (reason: string) => fault('stream_cut_off', `The stream ended early: ${reason}.`);

/**
 * All rows of a filter, newest first. Only one page is in memory at a time, and rows that arrive meanwhile are left out.
 */
export const logCsv = async (filter: LogFilter, request: RouteRequest<undefined>, stores: Stores) => {
  const { tenantId, gaveOut } = request;
  const { open, stopping } = stores.events;
  const mayRead = stillAllowed(request, stores);
  let checkedAt = threadMs();
  const page = (after?: LogRow): Promise<LogPage> =>
    findLogs(stores.reader('logs'), tenantId, {
      filter,
      page: 1,
      size: PAGE_SIZE,
      ...(after === undefined ? {} : { olderThan: { id: after.id, number: numberIn(filter, after) } }),
    });
  const check = async (): Promise<void> => {
    if (stopping.aborted) throw cutOff('shutting_down');
    if (threadMs() - checkedAt < CHECK_MS) return;
    checkedAt = threadMs();
    const reason = await mayRead();
    if (reason !== undefined) throw cutOff(reason);
  };
  const first = await page();
  const release = open(tenantId);
  const lines = csvOf(first, { tenantId, page, check, gaveOut });
  return streamBody(lines, { stalled: new AbortController(), onClosed: release });
};
