import { batch, computed, signal } from '@preact/signals';
import { call, textOf } from './api.js';
import { queryOf, type Filters } from './filters.js';
import { followEvents } from './tail.js';
import type { LedgerEvent, Log, LogPage, Problem } from './wire.js';

/** The rows of the log explorer: pages of the past, and new rows as they come. */

export const MAX_ROWS = 2_000;
/** Not a cursor: older rows have been cut off, and are found by the time of the last one. */
const BY_TIME = 'by time';
/** The first page fills a large screen, and is there sooner than a whole one. */
const FIRST_SIZE = '50';
const PAGE_SIZE = '100';
/** New rows are shown together, a few times a second at most. */
const SHOW_EVERY_MS = 200;

export const rows = signal<readonly Log[]>([]);
/** Rows that have come while the reader was reading. */
const waiting = signal<readonly Log[]>([]);
export const total = signal<number | undefined>(undefined);
export const problem = signal<string | undefined>(undefined);
export const isLoading = signal(false);
/** Where older rows continue. Undefined: there are none. */
export const next = signal<string | undefined>(undefined);
/** The reader has asked for a pause, or is reading further down or in the details of a row. */
export const isPausedByHand = signal(false);
export const isReading = signal(false);
const connection = signal<'off' | 'open' | 'reconnecting'>('off');

export type TailState =
  | { readonly kind: 'off' }
  | { readonly kind: 'live' }
  | { readonly kind: 'paused'; readonly count: number; readonly isMore: boolean }
  | { readonly kind: 'reconnecting' };

export const tailState = computed<TailState>(() => {
  if (connection.value === 'off') return { kind: 'off' };
  if (connection.value === 'reconnecting') return { kind: 'reconnecting' };
  if (!isPausedByHand.value && !isReading.value) return { kind: 'live' };
  const count = waiting.value.length;
  return { kind: 'paused', count, isMore: count >= MAX_ROWS };
});

let stop = new AbortController();
let known = new Set<string>();
let arrived: Log[] = [];
let timer: ReturnType<typeof setTimeout> | undefined;
let current: Filters = {};

const reset = (): void => {
  stop.abort();
  stop = new AbortController();
  clearTimeout(timer);
  [known, arrived, timer] = [new Set(), [], undefined];
};

/** Keeps the newest. Older rows are still there to be loaded: by their time, since their cursor was for others. */
const keepNewest = (all: readonly Log[]): readonly Log[] => {
  if (all.length <= MAX_ROWS) return all;
  const kept = all.slice(0, MAX_ROWS);
  known = new Set(kept.map(({ id }) => id));
  next.value = BY_TIME;
  return kept;
};

/** Shows what has come, unless that would move what the reader is looking at. */
const show = (): void => {
  timer = undefined;
  const fresh = arrived.toReversed();
  arrived = [];
  batch(() => {
    if (total.value !== undefined) total.value += fresh.length;
    if (isPausedByHand.value || isReading.value)
      waiting.value = [...fresh, ...waiting.value].slice(0, MAX_ROWS);
    else rows.value = keepNewest([...fresh, ...waiting.value, ...rows.value]);
    if (!isPausedByHand.value && !isReading.value) waiting.value = [];
  });
};

const onEvent = ({ log }: LedgerEvent): void => {
  if (log === undefined || known.has(log.id)) return;
  known.add(log.id);
  arrived.push(log);
  timer ??= setTimeout(show, SHOW_EVERY_MS);
};

/** The newest event, whatever the filter: new ones come after it. Undefined: there is none yet. */
const headPosition = async (abort: AbortSignal): Promise<string | undefined | Problem> => {
  const newest = await call<LogPage>('/logs?size=1', { signal: abort });
  if (!newest.ok) return newest.problem;
  const id = newest.value.data[0]?.id;
  if (id === undefined) return undefined;
  const event = await call<LedgerEvent>(`/events/${id}`, { signal: abort });
  return event.ok ? event.value.position : event.problem;
};

const take = ({ pagination, data }: LogPage): void => {
  const fresh = data.filter(({ id }) => !known.has(id));
  for (const { id } of fresh) known.add(id);
  next.value = pagination.next;
  rows.value = keepNewest([...rows.value, ...fresh]);
};

/** Most filters that select few rows need several pages until there is something to see. */
const MAX_PAGES = 20;

const loadPages = async (cursor: string | undefined, abort: AbortSignal): Promise<void> => {
  const before = rows.value.length;
  let start = cursor;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const page = await call<LogPage>(
      `/logs?${queryOf(current, start === undefined ? { size: FIRST_SIZE } : { size: PAGE_SIZE, start })}`,
      { signal: abort },
    );
    if (abort.aborted) return;
    if (!page.ok) return void (problem.value = textOf(page.problem));
    if (pages === 0 && before === 0) total.value = page.value.pagination.total_items;
    take(page.value);
    if (next.value === undefined || rows.value.length - before >= 50 || rows.value.length >= MAX_ROWS) return;
    start = next.value;
  }
};

/** Loads the newest rows of these filters and follows new ones. */
export const load = async (chosen: Filters): Promise<void> => {
  reset();
  const abort = stop.signal;
  current = chosen;
  batch(() => {
    [rows.value, waiting.value, next.value] = [[], [], undefined];
    [total.value, problem.value, isLoading.value] = [undefined, undefined, true];
    connection.value = 'off';
  });
  const { end_date } = chosen;
  const isPast = end_date !== undefined && Date.parse(end_date) <= Date.now();
  // Before the first page: what is recorded in between comes twice, and is shown once.
  const head = isPast ? undefined : await headPosition(abort);
  await loadPages(undefined, abort);
  if (abort.aborted) return;
  isLoading.value = false;
  // Without a position, all events of the past would come as new ones.
  if (typeof head === 'object') return void (problem.value ??= textOf(head));
  if (isPast || problem.value !== undefined) return;
  const onState = (state: 'open' | 'reconnecting'): void => {
    if (!abort.aborted) connection.value = state;
  };
  await followEvents(chosen, head, { onState, onEvent }, abort);
};

export const loadOlder = async (): Promise<void> => {
  if (next.value === undefined || isLoading.value || rows.value.length >= MAX_ROWS) return;
  const abort = stop.signal;
  [problem.value, isLoading.value] = [undefined, true];
  await loadPages(next.value, abort);
  if (!abort.aborted) isLoading.value = false;
};

/** Shows what has come meanwhile and continues live. */
export const resumeTail = (): void => {
  batch(() => {
    [isPausedByHand.value, isReading.value] = [false, false];
    rows.value = keepNewest([...waiting.value, ...rows.value]);
    waiting.value = [];
  });
};

/** Whoever signs in next must not see them. */
export const stopRows = (): void => {
  reset();
  batch(() => {
    [rows.value, waiting.value, next.value] = [[], [], undefined];
    connection.value = 'off';
  });
};
