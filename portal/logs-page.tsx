import { useEffect, useRef } from 'preact/hooks';
import { EventDetail } from './event-detail.js';
import { ExportLinks } from './export-links.js';
import { FilterBar } from './filter-bar.js';
import { filters } from './filters.js';
import { Histogram } from './histogram.js';
import { isReading, load, next, problem, resumeTail, rows, stopRows, tailState, total } from './log-rows.js';
import { LogTable, moveTo } from './log-table.js';
import { Alert, counted } from './parts.js';
import { go, parameter, withParameters } from './place.js';
import { TailControl } from './tail-control.js';

const Total = () => (
  <p class="quiet" aria-live="off">
    {counted(total.value ?? rows.value.length, 'row')}
    {total.value === undefined && next.value !== undefined ? ' so far' : ''}
  </p>
);

/** `/` goes to the id, `j` and `k` move, Enter opens, Escape closes. */
const useKeys = (): void =>
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const { key, target } = event;
      if (event.ctrlKey || event.metaKey || event.altKey || !(target instanceof Element)) return;
      if (target.closest('dialog, input, select') !== null) return;
      if (key === 'Escape' && parameter('event') !== undefined) go(withParameters({ event: undefined }));
      else if (key === 'j') moveTo(1);
      else if (key === 'k') moveTo(-1);
      else if (key === '/') {
        event.preventDefault();
        document.getElementById('search')?.focus();
      }
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);

export const LogsPage = () => {
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
  const settle = (): void => {
    const isNow = opened !== undefined || (scroller.current?.scrollTop ?? 0) > 8;
    if (isNow === isReading.value) return;
    if (!isNow && tailState.value.kind === 'paused' && tailState.value.isMore) return;
    isReading.value = isNow;
    if (tailState.value.kind === 'live') resumeTail();
  };
  useEffect(settle, [opened]);
  return (
    <main class={opened === undefined ? 'explorer' : 'explorer with-detail'}>
      <h1 class="hidden">Log</h1>
      <FilterBar />
      <Histogram />
      <div class="tools">
        <TailControl onResume={() => scroller.current?.scrollTo(0, 0)} />
        <Total />
        <ExportLinks />
      </div>
      <Alert text={problem.value} />
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
