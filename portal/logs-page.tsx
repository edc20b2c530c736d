import { useEffect, useRef } from 'preact/hooks';
import { EventDetail } from './event-detail.js';
import { ExportLinks } from './export-links.js';
import { FilterBar } from './filter-bar.js';
import { filters } from './filters.js';
import { Histogram } from './histogram.js';
import { Keyboard } from './keyboard.js';
import { isReading, leave, load, resumeTail, stopRows, tailState } from './log-rows.js';
import { isLoading, next, problem, rows, total } from './log-rows.js';
import { LogTable } from './log-table.js';
import { askForApplications } from './names.js';
import { Notice, counted } from './parts.js';
import { parameter, place, withParameters } from './place.js';
import { Scopes } from './scopes.js';
import { TailControl } from './tail-control.js';

const Total = () => (
  <p class="quiet total" aria-live="off">
    {isLoading.value && rows.value.length === 0 ? null : counted(total.value ?? rows.value.length, 'row')}
    {total.value === undefined && next.value !== undefined ? ' so far' : ''}
  </p>
);

/** On a phone the page scrolls, elsewhere the list does. */
const scrollerOf = (list: HTMLElement): Element =>
  getComputedStyle(list).overflowY === 'visible' ? document.documentElement : list;

/** Whether the first row is out of view. */
const isScrolled = (list: HTMLElement): boolean =>
  scrollerOf(list) === list ? list.scrollTop > 8 : list.getBoundingClientRect().top < 0;

/** Loads what is chosen. Where the reader has been before, it is as they left it. */
const useRows = (list: { readonly current: HTMLDivElement | null }): void => {
  const address = withParameters({ event: undefined });
  const entry = useRef(place.value.entry);
  useEffect(() => {
    const where = () => `${entry.current} ${address}`;
    const scroll = (top: number): void => {
      if (list.current !== null) scrollerOf(list.current).scrollTop = top;
    };
    entry.current = place.value.entry;
    let last = load(filters.value, where());
    requestAnimationFrame(() => scroll(last));
    const note = (): void => {
      if (list.current !== null) last = scrollerOf(list.current).scrollTop;
    };
    addEventListener('scroll', note, { capture: true, passive: true });
    return () => {
      removeEventListener('scroll', note, { capture: true });
      leave(where(), last);
    };
  }, [JSON.stringify(filters.value)]);
  useEffect(() => void (entry.current = place.value.entry));
  useEffect(() => {
    void askForApplications();
    return stopRows;
  }, []);
};

export const LogsPage = () => {
  const opened = parameter('event');
  const list = useRef<HTMLDivElement>(null);
  useRows(list);
  const settle = (): void => {
    const isNow = opened !== undefined || (list.current !== null && isScrolled(list.current));
    if (isNow === isReading.value) return;
    if (!isNow && tailState.value.kind === 'paused' && tailState.value.isMore) return;
    isReading.value = isNow;
    if (tailState.value.kind === 'live') resumeTail();
  };
  useEffect(settle, [opened]);
  useEffect(() => {
    addEventListener('scroll', settle, { capture: true, passive: true });
    return () => removeEventListener('scroll', settle, { capture: true });
  });
  const showNew = (): void => {
    resumeTail();
    const openRow = () => document.querySelector('.log .open');
    if (openRow() !== null) requestAnimationFrame(() => openRow()?.scrollIntoView({ block: 'nearest' }));
    else if (list.current !== null) scrollerOf(list.current).scrollTop = 0;
  };
  return (
    <main class={opened === undefined ? 'explorer' : 'explorer with-detail'}>
      <h1 class="hidden">Log</h1>
      <Keyboard />
      <Scopes />
      <FilterBar />
      <Histogram />
      <div class="buttons tools">
        <TailControl onResume={showNew} />
        <Total />
        <ExportLinks />
      </div>
      <Notice text={problem.value} />
      <div class="split">
        <div class="list" ref={list} tabIndex={0} role="region" aria-label="Rows of the log">
          <LogTable opened={opened} />
        </div>
        {opened === undefined ? null : <EventDetail id={opened} />}
      </div>
    </main>
  );
};
