import { useEffect, useRef, useState } from 'preact/hooks';
import { call } from './api.js';
import { filters, isNumbered, queryOf, type Filters } from './filters.js';
import { total } from './log-rows.js';
import { clock, counted } from './parts.js';
import { go, timeStyle, withParameters } from './place.js';
import { DAY_MS, dayOf, HOUR_MS, momentFrom, timeText, type TimeStyle } from './time.js';
import type { LogCounts, LogPage } from './wire.js';

interface Bar {
  readonly start: string;
  readonly end: string;
  readonly count: number;
}

/** The service counts so many intervals at a time. */
const MAX_INTERVALS = 119;
const MAX_REQUESTS = 12;

/** The longest time that each unit is for, and what is counted. */
const UNITS = [
  { unit: 'minute', interval: 'minute', ms: 60_000, upToMs: 2 * HOUR_MS },
  { unit: 'hour', interval: 'hour', ms: HOUR_MS, upToMs: 4 * DAY_MS },
  { unit: 'day', interval: 'day', ms: DAY_MS, upToMs: 100 * DAY_MS },
  { unit: 'month', interval: 'day', ms: DAY_MS, upToMs: Infinity },
] as const;

const iso = (ms: number): string => new Date(ms).toISOString();

/** Where the log of these filters begins. */
const oldest = async (chosen: Filters, rowCount: number, abort: AbortSignal): Promise<string | undefined> => {
  const query = queryOf(chosen, { size: '1', page: String(rowCount) });
  const page = await call<LogPage>(`/logs?${query}`, { signal: abort });
  return page.ok ? page.value.data[0]?.created_at : undefined;
};

/** Adds up what is in the same day or month of the viewer. */
const grouped = (bars: readonly Bar[], unit: string, style: TimeStyle): readonly Bar[] => {
  if (unit !== 'day' && unit !== 'month') return bars;
  const { length } = unit === 'day' ? 'yyyy-mm-dd' : 'yyyy-mm';
  const groups = Map.groupBy(bars, ({ start }) => dayOf(start, style).slice(0, length));
  return [...groups.values()].map((group) => ({
    start: group[0]?.start ?? '',
    end: group.at(-1)?.end ?? '',
    count: group.reduce((sum, { count }) => sum + count, 0),
  }));
};

/** Where the next interval begins: a day at the midnight of the viewer. */
const nextAfter = (at: number, ms: number, style: TimeStyle): number => {
  if (ms < DAY_MS) return Math.floor(at / ms) * ms + ms;
  const tomorrow = iso(Date.parse(dayOf(iso(at), style)) + DAY_MS);
  return Date.parse(momentFrom(dayOf(tomorrow, 'utc'), style) ?? '');
};

/** Where one request ends and the next begins: after a part of an interval, or a day of another length. */
const cutsOf = (first: number, upTo: number, ms: number, style: TimeStyle): readonly number[] => {
  const cuts = [first];
  for (let at = first, next = 0; at < upTo; at = next) {
    next = nextAfter(at, ms, style);
    const isFull = next - (cuts.at(-1) ?? first) >= MAX_INTERVALS * ms;
    if (next < upTo && (isFull || next - at !== ms)) cuts.push(next);
  }
  return cuts;
};

const countBetween = async (
  chosen: Filters,
  interval: string,
  [from, upTo]: readonly [string, string],
  abort: AbortSignal,
): Promise<readonly Bar[]> => {
  const query = queryOf({ ...chosen, start_date: from, end_date: upTo }, { interval });
  const found = await call<LogCounts>(`/logs/counts?${query}`, { signal: abort });
  const data = found.ok ? found.value.data : [];
  const endOf = (i: number): string => data[i + 1]?.start_date ?? upTo;
  return data.map(({ start_date: start, count }, i) => ({ start, count, end: endOf(i) }));
};

/** Counts the rows of the same time as the list: from its first row, if no time is chosen. */
const loadChart = async (chosen: Filters, style: TimeStyle, rowCount: number, abort: AbortSignal) => {
  const start = chosen.start_date ?? (await oldest(chosen, rowCount, abort));
  const upTo = chosen.end_date === undefined ? Date.now() : Date.parse(chosen.end_date);
  if (start === undefined || !(Date.parse(start) < upTo)) return undefined;
  const { unit, interval, ms } = UNITS.find(({ upToMs }) => upTo - Date.parse(start) <= upToMs) ?? UNITS[3];
  const first = Math.max(Date.parse(start), upTo - MAX_REQUESTS * MAX_INTERVALS * ms);
  const cuts = cutsOf(first, upTo, ms, style);
  const counts = await Promise.all(
    cuts.map((at, i) => countBetween(chosen, interval, [iso(at), iso(cuts[i + 1] ?? upTo)], abort)),
  );
  // What comes after these rows is added to the last bar.
  return { bars: grouped(counts.flat(), unit, style), unit, total: rowCount };
};

const WIDTH = 1_000;
const HEIGHT = 60;

/** Drag over them with a mouse to zoom in; a finger scrolls the page. */
const Bars = ({ bars, textOf }: { bars: readonly Bar[]; textOf: (moment: string) => string }) => {
  const ref = useRef<SVGSVGElement>(null);
  const [drag, setDrag] = useState<readonly [number, number]>();
  const most = Math.max(1, ...bars.map(({ count }) => count));
  const width = WIDTH / bars.length;
  const indexAt = ({ clientX }: PointerEvent): number => {
    const { left, width: full } = ref.current?.getBoundingClientRect() ?? { left: 0, width: 1 };
    return Math.max(0, Math.min(bars.length - 1, Math.floor(((clientX - left) / full) * bars.length)));
  };
  const [low = 0, high = -1] = drag?.toSorted((a, b) => a - b) ?? [];
  const finish = (): void => {
    setDrag(undefined);
    const [first, last] = [bars[low], bars[high]];
    if (first === undefined || last === undefined) return;
    // Up to the newest bar it has no end, so new rows are shown.
    const end = high === bars.length - 1 ? filters.value.end_date : last.end;
    go(withParameters({ start_date: first.start, end_date: end, range: undefined, event: undefined }));
  };
  return (
    <svg
      ref={ref}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="group"
      aria-label="Rows over time"
      onPointerDown={(event) => {
        if (event.pointerType === 'touch') return;
        ref.current?.setPointerCapture(event.pointerId);
        setDrag([indexAt(event), indexAt(event)]);
      }}
      onPointerMove={(event) => drag !== undefined && setDrag([drag[0], indexAt(event)])}
      onPointerUp={finish}
      onPointerCancel={() => setDrag(undefined)}
    >
      <rect class="chosen" x={low * width} y={0} width={(high - low + 1) * width} height={HEIGHT} />
      {bars.map(({ start, count }, i) => {
        const height = count === 0 ? 0 : Math.max(2, (count / most) * (HEIGHT - 2));
        const label = `${textOf(start)}: ${counted(count, 'row')}`;
        return (
          <rect
            key={start}
            class="bar"
            role="img"
            aria-label={label}
            x={(i + 0.1) * width}
            y={HEIGHT - height}
            width={width * 0.8}
            height={height}
          >
            <title>{label}</title>
          </rect>
        );
      })}
    </svg>
  );
};

const REFRESH_MS = 60_000;

/** The rows of the list over its time. */
export const Histogram = () => {
  const [chart, setChart] = useState<Awaited<ReturnType<typeof loadChart>>>();
  const [chosen, style] = [filters.value, timeStyle.value];
  const rowCount = total.value;
  const isKnown = rowCount !== undefined && rowCount > 0;
  const key = JSON.stringify([chosen, style, isKnown, Math.floor(clock.value / REFRESH_MS)]);
  useEffect(() => {
    if (!isKnown || !isNumbered(chosen)) return;
    const abort = new AbortController();
    void loadChart(chosen, style, rowCount, abort.signal).then((loaded) => {
      if (!abort.signal.aborted) setChart(loaded);
    });
    return () => abort.abort();
  }, [key]);
  if (!isNumbered(chosen))
    return (
      <p class="quiet">
        No chart: the service counts the rows of an operation, an actor, a source or a trace, but not together
        with another filter than dates.
      </p>
    );
  if (chart === undefined || !isKnown) return null;
  const textOf = (moment: string): string => timeText(moment, style);
  const last = chart.bars.at(-1);
  const bars = chart.bars.map((bar) =>
    bar === last ? { ...bar, count: bar.count + Math.max(0, rowCount - chart.total) } : bar,
  );
  return (
    <figure class="histogram">
      <Bars bars={bars} textOf={textOf} />
      <figcaption>
        <span>{textOf(bars[0]?.start ?? '')}</span>
        <span>{`at most ${Math.max(0, ...bars.map(({ count }) => count)).toLocaleString('en')} a ${chart.unit}`}</span>
        <span>{textOf(last?.end ?? '')}</span>
      </figcaption>
    </figure>
  );
};
