import { batch, computed, effect, signal } from '@preact/signals';
import { call, openStream, pause, session, textOf } from './api.js';
import { isNumbered, queryOf, type Filters } from './filters.js';
import { learnNames } from './names.js';
import { followEvents, linesIn } from './tail.js';
import type { Row } from './what-happened.js';
import type { LedgerEvent, Log, LogPage } from './wire.js';

/** The rows of the log explorer: pages of the past, and new rows as they come. */

export const MAX_ROWS = 2_000;
/** Not a cursor: older rows have been cut off, and are found by the time of the last one. */
const BY_TIME = 'by time';
/** The first page fills a large screen, and is there sooner than a whole one. */
const FIRST_SIZE = 50;
const PAGE_SIZE = 100;
/** So many rows the service looks at for one page. */
const LOOKED_AT = 1_000;
/** Between pages, to stay within the limit of the portal however far the next row is. */
const PAGE_PAUSE_MS = 25;
/** New rows are shown together, a few times a second at most. */
const SHOW_EVERY_MS = 200;

export const rows = signal<readonly Row[]>([]);
/** Rows that have come while the reader was reading. */
const waiting = signal<readonly Row[]>([]);
export const total = signal<number | undefined>(undefined);
export const problem = signal<string | undefined>(undefined);
export const isLoading = signal(false);
/** How many rows were looked at for those that are shown. */
export const lookedAt = signal(0);
/** Where older rows continue. Undefined: there are none. */
export const next = signal<string | undefined>(undefined);
/** The reader is further down, or in the details of a row. */
export const isReading = signal(false);
const connection = signal<'off' | 'open' | 'reconnecting'>('off');

/** Above this row are those that came while the reader was reading, so many of them. */
export const newAbove = signal<{ readonly id: string; readonly count: number } | undefined>(undefined);

export type TailState =
  | { readonly kind: 'off' | 'live' | 'reconnecting' }
  | { readonly kind: 'paused'; readonly count: number; readonly isMore: boolean };

export const tailState = computed<TailState>(() => {
  if (connection.value === 'off') return { kind: 'off' };
  if (connection.value === 'reconnecting') return { kind: 'reconnecting' };
  if (!isReading.value) return { kind: 'live' };
  const count = waiting.value.length;
  return { kind: 'paused', count, isMore: count >= MAX_ROWS };
});

let stop = new AbortController();
let known = new Set<string>();
let arrived: LedgerEvent[] = [];
let timer: ReturnType<typeof setTimeout> | undefined;
let current: Filters = {};

const reset = (): void => {
  stop.abort();
  stop = new AbortController();
  clearTimeout(timer);
  [known, arrived, timer] = [new Set(), [], undefined];
};

/** Keeps the newest. Older rows are still there to be loaded: by their time, since their cursor was for others. */
const keepNewest = (all: readonly Row[]): readonly Row[] => {
  if (all.length <= MAX_ROWS) return all;
  const kept = all.slice(0, MAX_ROWS);
  known = new Set(kept.map(({ log }) => log.id));
  next.value = BY_TIME;
  return kept;
};

const markNew = (more: number): void => {
  const { id = rows.value[0]?.log.id, count = 0 } = newAbove.value ?? {};
  if (more > 0 && id !== undefined) newAbove.value = { id, count: count + more };
};

/** Shows what has come, unless that would move what the reader is looking at. */
const show = (): void => {
  timer = undefined;
  const came = new Map(arrived.map((event) => [event.id, event]));
  const fresh = arrived.flatMap((event): Row[] =>
    event.log === undefined || known.has(event.id) ? [] : [{ log: event.log, event, isNew: true }],
  );
  arrived = [];
  for (const { log } of fresh) known.add(log.id);
  const explained = (row: Row): Row =>
    row.event === undefined && came.has(row.log.id) ? { ...row, event: came.get(row.log.id) } : row;
  batch(() => {
    learnNames([...came.values()]);
    const isHeld = isReading.value;
    if (total.value !== undefined) total.value += fresh.length;
    waiting.value = [...fresh.toReversed(), ...waiting.value].slice(0, MAX_ROWS);
    rows.value = keepNewest([...(isHeld ? [] : waiting.value), ...rows.value.map(explained)]);
    if (!isHeld) waiting.value = [];
  });
};

const onEvent = (event: LedgerEvent): void => {
  arrived.push(event);
  timer ??= setTimeout(show, SHOW_EVERY_MS);
};

/** Of what is not shown, or no longer, nothing is to be explained. */
const explainRow = (event: LedgerEvent): void => {
  if (known.has(event.id)) onEvent(event);
};

const eventOf = (id = '', abort: AbortSignal) => call<LedgerEvent>(`/events/${id}`, { signal: abort });

/** The events of a page of rows: its oldest one by its id, the others after it. */
const explain = async (page: readonly Log[], abort: AbortSignal): Promise<void> => {
  if (page.length === 0) return;
  const first = await eventOf(page.at(-1)?.id, abort);
  if (!first.ok) return;
  explainRow(first.value);
  if (page.length === 1) return;
  const query = queryOf(current, { after: first.value.position, limit: String(page.length - 1) });
  const response = await openStream(`/events?${query}`, abort);
  if (response?.ok !== true || response.body === null) return;
  for await (const line of linesIn(response.body)) if ('position' in line) explainRow(line);
};

const take = ({ pagination, data }: LogPage): readonly Log[] => {
  const fresh = data.filter(({ id }) => !known.has(id));
  for (const { id } of fresh) known.add(id);
  next.value = pagination.next;
  rows.value = keepNewest([...rows.value, ...fresh.map((log) => ({ log }))]);
  return fresh;
};

const loadPage = async (
  start: string | undefined,
  abort: AbortSignal,
): Promise<readonly Log[] | undefined> => {
  const size = start === undefined ? FIRST_SIZE : PAGE_SIZE;
  const query = queryOf(current, { size: String(size), ...(start === undefined ? {} : { start }) });
  const page = await call<LogPage>(`/logs?${query}`, { signal: abort });
  if (abort.aborted) return undefined;
  if (!page.ok) {
    problem.value = textOf(page.problem);
    return undefined;
  }
  if (start === undefined) total.value = page.value.pagination.total_items;
  const { length } = page.value.data;
  lookedAt.value += isNumbered(current) || length === size ? length : LOOKED_AT;
  return take(page.value);
};

/** Rows of some filters are far apart, so pages may be short: goes on until there is a page to see, or nothing more. */
const fillPage = async (abort: AbortSignal): Promise<void> => {
  const wanted = rows.value.length + (isNumbered(current) ? 1 : FIRST_SIZE);
  while (next.value !== undefined && rows.value.length < Math.min(wanted, MAX_ROWS)) {
    const page = await loadPage(next.value, abort);
    if (page === undefined) return;
    void explain(page, abort).catch(() => undefined);
    await pause(PAGE_PAUSE_MS, abort);
  }
};

/** Follows what comes after an event, if there is one. After the oldest row of the first page, the others are explained. */
const follow = async (id: string | undefined, abort: AbortSignal): Promise<void> => {
  const event = id === undefined ? undefined : await eventOf(id, abort);
  if (abort.aborted) return;
  // Without a position, all events of the past would come as new ones.
  if (event?.ok === false) return void (problem.value ??= textOf(event.problem));
  if (event !== undefined) explainRow(event.value);
  const onState = (state: 'open' | 'reconnecting'): void => {
    if (!abort.aborted) connection.value = state;
  };
  await followEvents(current, event?.value.position, { onState, onEvent }, abort);
};

/** The newest row, whatever the filters. */
const newestId = async (abort: AbortSignal): Promise<string | undefined> => {
  const newest = await call<LogPage>('/logs?size=1', { signal: abort });
  return newest.ok ? newest.value.data[0]?.id : undefined;
};

const NOTHING = {
  rows: [] as readonly Row[],
  next: undefined as string | undefined,
  total: undefined as number | undefined,
  scrollTop: 0,
};
/** What was on the page at places that the reader has left. */
const left = new Map<string, typeof NOTHING>();
const MAX_LEFT = 5;

/** Keeps what is shown, for when the reader comes back to this place: not for whoever signs in next. */
export const leave = (where: string, scrollTop: number): void => {
  if (rows.value.length === 0 || session.value.status !== 'signed_in') return;
  left.set(where, { rows: rows.value, next: next.value, total: total.value, scrollTop });
  const [oldest = ''] = left.keys();
  if (left.size > MAX_LEFT) left.delete(oldest);
};

effect(() => {
  if (session.value.status === 'signed_out') left.clear();
});

const begin = (chosen: Filters, found: typeof NOTHING): void => {
  reset();
  current = chosen;
  known = new Set(found.rows.map(({ log }) => log.id));
  batch(() => {
    [rows.value, waiting.value, next.value, lookedAt.value] = [found.rows, [], found.next, 0];
    [total.value, problem.value, isLoading.value] = [found.total, undefined, false];
    [connection.value, newAbove.value] = ['off', undefined];
  });
};

const loadNew = async (isPast: boolean, abort: AbortSignal): Promise<void> => {
  isLoading.value = true;
  let page = await loadPage(undefined, abort);
  // An empty page is asked for once more after the newest row was seen: what comes in between is not missed.
  const newest = page?.length === 0 ? await newestId(abort) : page?.at(-1)?.id;
  if (page?.length === 0) page = await loadPage(undefined, abort);
  if (page !== undefined) {
    void (isPast ? explain(page, abort) : follow(newest, abort)).catch(() => undefined);
    if (page.length === 0) await fillPage(abort);
  }
  if (!abort.aborted) isLoading.value = false;
};

/**
 * Loads the newest rows of these filters and follows new ones. Where the reader has been before, it shows what was there,
 * and returns how far it was scrolled.
 */
export const load = (chosen: Filters, where: string): number => {
  const found = left.get(where);
  begin(chosen, found ?? NOTHING);
  const isPast = chosen.end_date !== undefined && Date.parse(chosen.end_date) <= Date.now();
  if (found === undefined) void loadNew(isPast, stop.signal);
  else if (!isPast) void follow(found.rows[0]?.log.id, stop.signal).catch(() => undefined);
  return found?.scrollTop ?? 0;
};

export const loadOlder = async (): Promise<void> => {
  if (next.value === undefined || isLoading.value || rows.value.length >= MAX_ROWS) return;
  const abort = stop.signal;
  [problem.value, isLoading.value] = [undefined, true];
  await fillPage(abort);
  if (!abort.aborted) isLoading.value = false;
};

/** Shows what has come meanwhile, with a line below it, and continues live. */
export const resumeTail = (): void => {
  batch(() => {
    isReading.value = false;
    if (waiting.value.length > 0) newAbove.value = undefined;
    markNew(waiting.value.length);
    rows.value = keepNewest([...waiting.value, ...rows.value]);
    waiting.value = [];
  });
};

export const stopRows = (): void => begin({}, NOTHING);
