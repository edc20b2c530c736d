import { useEffect, useRef } from 'preact/hooks';
import { isTyping } from './help.js';
import { EventDetail } from './event-detail.js';
import { ExportLinks } from './export-links.js';
import { filters } from './filters.js';
import { Histogram } from './histogram.js';
import { isReading, load, problem, resumeTail, rows, stopRows, tailState, total } from './log-rows.js';
import { LogTable, moveTo } from './log-table.js';
import { Alert, lacking, NeedsPermission } from './parts.js';
import { go, parameter, times, timeStyle, withParameters } from './place.js';
import { FilterChips, SearchBox } from './search-box.js';
import { TailControl } from './tail-control.js';

const TimeChoice = () => (
  <label class="inline">
    <span class="quiet" aria-hidden="true">
      Time
    </span>
    <select
      aria-label="Time"
      value={timeStyle.value}
      onChange={({ currentTarget: { value } }) =>
        go(withParameters({ time: value === 'relative' ? undefined : value }), { replace: true })
      }
    >
      {times.map((style) => (
        <option key={style} value={style}>
          {style === 'utc' ? 'UTC' : style}
        </option>
      ))}
    </select>
  </label>
);

const Total = () => (
  <p class="quiet total" aria-live="off">
    {total.value === undefined
      ? `${rows.value.length.toLocaleString('en')} rows so far`
      : `${total.value.toLocaleString('en')} rows`}
  </p>
);

/** `/` searches, `j` and `k` move, Enter opens, Escape closes. */
const useKeys = (): void =>
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (
        event.key === 'Escape' &&
        !(event.target instanceof HTMLElement && event.target.closest('dialog'))
      ) {
        if (parameter('event') !== undefined) go(withParameters({ event: undefined }));
        return;
      }
      if (isTyping(event)) return;
      if (event.key === '/') {
        event.preventDefault();
        document.getElementById('search')?.focus();
      } else if (event.key === 'j') moveTo(1);
      else if (event.key === 'k') moveTo(-1);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);

const Explorer = () => {
  const opened = parameter('event');
  const chosen = filters.value;
  const scroller = useRef<HTMLDivElement>(null);
  const key = JSON.stringify(chosen);
  useEffect(() => {
    void load(chosen);
    scroller.current?.scrollTo(0, 0);
  }, [key]);
  useEffect(() => stopRows, []);
  useKeys();
  const readingNow = (): boolean => opened !== undefined || (scroller.current?.scrollTop ?? 0) > 8;
  const settle = (): void => {
    const isNow = readingNow();
    if (isNow === isReading.value) return;
    if (isNow) isReading.value = true;
    else if (tailState.value.kind !== 'paused' || !tailState.value.isMore) resumeUnlessPaused();
  };
  useEffect(settle, [opened]);
  return (
    <main class={opened === undefined ? 'explorer' : 'explorer with-detail'}>
      <h1 class="hidden">Log</h1>
      <div class="tools">
        <SearchBox />
        <TailControl onResume={() => scroller.current?.scrollTo(0, 0)} />
      </div>
      <div class="tools">
        <FilterChips />
        <span class="space" />
        <Total />
        <TimeChoice />
        <ExportLinks />
      </div>
      <Histogram />
      {problem.value === undefined ? null : <Alert text={problem.value} />}
      <div class="split">
        <div
          class="list"
          ref={scroller}
          onScroll={settle}
          tabIndex={0}
          role="region"
          aria-label="Rows of the log"
        >
          <LogTable opened={opened} />
        </div>
        {opened === undefined ? null : <EventDetail id={opened} key={opened} />}
      </div>
    </main>
  );
};

const resumeUnlessPaused = (): void => {
  isReading.value = false;
  if (tailState.value.kind === 'live') resumeTail();
};

export const LogsPage = () =>
  lacking('log:read') === undefined ? (
    <Explorer />
  ) : (
    <NeedsPermission permission="log:read" to="see the log" />
  );
