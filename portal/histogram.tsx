import { useEffect, useRef, useState } from 'preact/hooks';
import { loadChart, type Bar, type Chart } from './chart.js';
import { filters, isNumbered } from './filters.js';
import { total } from './log-rows.js';
import { clock, counted } from './parts.js';
import { go, timeStyle, withParameters } from './place.js';
import { DAY_MS, HOUR_MS, inputText, timeText, type TimeStyle } from './time.js';

const HEIGHT = 56;
const MAX_TICKS = 8;

/** Between ticks, in units: only at times that are round. */
const STEPS: Readonly<Record<Chart['unit'], readonly number[]>> = {
  minute: [1, 2, 5, 10, 15, 30, 60],
  hour: [1, 3, 6, 12, 24, 48],
  day: [1, 2, 7, 14, 28],
  month: [1, 3, 6, 12, 24],
};

const MS = { minute: 60_000, hour: HOUR_MS, day: DAY_MS };

/** The number of the unit that a moment of the viewer is in. Weeks begin on Mondays. */
const numberOf = (moment: string, unit: Chart['unit'], style: TimeStyle): number => {
  const at = new Date(`${inputText(moment, style)}Z`);
  if (unit === 'month') return at.getUTCFullYear() * 12 + at.getUTCMonth();
  return Math.floor(at.getTime() / MS[unit]) + (unit === 'day' ? 3 : 0);
};

/** Where there are ticks, and what they say. */
const ticksOf = ({ bars, unit }: Chart, style: TimeStyle): readonly (readonly [number, string])[] => {
  const numbers = bars.map(({ start }) => numberOf(start, unit, style));
  const roundAt = (step: number) => numbers.flatMap((n, i) => (n % step === 0 ? [i] : []));
  const found = STEPS[unit].map(roundAt).find(({ length }) => length <= MAX_TICKS) ?? [];
  return found.map((at) => {
    const { start = '' } = bars[at] ?? {};
    const isDay = unit === 'day' || inputText(start, style).endsWith('00:00');
    return [at, timeText(start, style, unit === 'month' ? unit : isDay ? 'day' : 'hours')];
  });
};

const PART = 0.75;
const TIMES = 3;

/** Higher columns are cut, so that a busy one does not flatten the others. */
const heightOf = (bars: readonly Bar[]): number => {
  const counts = bars.flatMap(({ count }) => (count > 0 ? [count] : [])).toSorted((a, b) => a - b);
  const [most = 1, usual = 1] = [counts.at(-1), counts[Math.floor((counts.length - 1) * PART)]];
  return most > 2 * TIMES * usual ? TIMES * usual : most;
};

/** When a column begins and ends, and how many rows it has. */
const readoutOf = ({ start, end, count }: Bar, unit: Chart['unit'], style: TimeStyle): string => {
  const rows = counted(count, 'row');
  if (unit === 'month') return `${timeText(start, style, 'month')}: ${rows}`;
  if (unit === 'day') return `${timeText(start, style, 'year')}: ${rows}`;
  return `${timeText(start, style, 'day')}, ${timeText(start, style, 'hours')}–${timeText(end, style, 'hours')}: ${rows}`;
};

const zoomTo = (start: string, end: string | undefined): void =>
  go(withParameters({ start_date: start, end_date: end, range: undefined, event: undefined }));

type Step = readonly [sign: string, word: string, take: (() => void) | undefined];

/** What leads to the time before, after, or around this one. Up to now it has no end, so that new rows are shown. */
const stepsFrom = (bars: readonly Bar[]): readonly Step[] => {
  const { start_date, end_date } = filters.value;
  const start = Date.parse(start_date ?? bars[0]?.start ?? '');
  const end = end_date === undefined ? Date.now() : Date.parse(end_date);
  const ms = end - start;
  const show = (from: number, upTo: number) => () =>
    zoomTo(new Date(from).toISOString(), upTo >= Date.now() ? undefined : new Date(upTo).toISOString());
  if (!(ms > 0)) return [];
  return [
    ['‹', 'Earlier', show(start - ms, start)],
    ['›', 'Later', end_date === undefined ? undefined : show(end, end + ms)],
    ['−', 'Zoom out', start_date === undefined ? undefined : show(start - ms, end + ms)],
  ];
};

const Steps = ({ bars }: { readonly bars: readonly Bar[] }) => (
  <span class="buttons">
    {stepsFrom(bars).map(([sign, word, take]) => (
      <button
        key={word}
        type="button"
        class="small"
        aria-label={word}
        disabled={take === undefined}
        onClick={take}
      >
        {sign} <span class="wide-only">{word}</span>
      </button>
    ))}
  </span>
);

const Bars = ({ bars, low, high }: { bars: readonly Bar[]; low: number; high: number }) => {
  const most = heightOf(bars);
  return (
    <svg viewBox={`0 0 ${bars.length} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <rect class="chosen" x={low} y={0} width={Math.max(0, high - low + 1)} height={HEIGHT} />
      {bars.map(({ start, count }, i) => {
        const height = count === 0 ? 0 : Math.max(2, (Math.min(count, most) / most) * HEIGHT);
        const bar = { x: i + 0.1, y: HEIGHT - height, width: 0.8, height };
        return [
          <rect key={start} class="bar" {...bar} />,
          count > most ? <rect key={`${start} cut`} class="cut" {...bar} y={6} height={3} /> : null,
        ];
      })}
    </svg>
  );
};

interface ColumnsProps {
  readonly chart: Chart;
  readonly at: number | undefined;
  readonly onPoint: (at: number | undefined) => void;
  readonly onZoom: (low: number, high: number) => void;
}

/** Drag over the columns with a mouse to zoom in; a finger scrolls the page, and a tap reads a column. */
const Columns = ({ chart, at, onPoint, onZoom }: ColumnsProps) => {
  const { bars, unit } = chart;
  const ref = useRef<HTMLDivElement>(null);
  const [from, setFrom] = useState<number>();
  const within = (i: number): number => Math.max(0, Math.min(bars.length - 1, i));
  const indexAt = ({ clientX }: PointerEvent): number => {
    const { left, width } = ref.current?.getBoundingClientRect() ?? { left: 0, width: 1 };
    return within(Math.floor(((clientX - left) / width) * bars.length));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const now = at ?? bars.length - 1;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: bars.length - 1 }[event.key];
    if (to !== undefined) onPoint(within(to));
    else if (event.key === 'Enter') onZoom(now, now);
    else if (event.key === 'Escape') stepsFrom(bars).at(-1)?.[2]?.();
    else return;
    event.preventDefault();
  };
  const [low = -1, high = -1] = at === undefined ? [] : [from ?? at, at].toSorted((a, b) => a - b);
  const shown = bars[at ?? bars.length - 1];
  return (
    <div
      ref={ref}
      class="columns"
      role="slider"
      tabIndex={0}
      aria-label="Columns of rows"
      aria-valuemin={0}
      aria-valuemax={bars.length - 1}
      aria-valuenow={at ?? bars.length - 1}
      aria-valuetext={shown && readoutOf(shown, unit, timeStyle.value)}
      onKeyDown={onKeyDown}
      onPointerDown={(event) => {
        if (event.pointerType !== 'mouse') return;
        ref.current?.setPointerCapture(event.pointerId);
        setFrom(indexAt(event));
      }}
      onPointerMove={(event) => event.pointerType === 'mouse' && onPoint(indexAt(event))}
      onPointerUp={(event) => {
        if (event.pointerType === 'mouse' && from !== undefined) onZoom(low, high);
        else onPoint(indexAt(event));
        setFrom(undefined);
      }}
      onPointerCancel={() => setFrom(undefined)}
      onPointerLeave={(event) => event.pointerType === 'mouse' && onPoint(undefined)}
    >
      <Bars bars={bars} low={low} high={high} />
    </div>
  );
};

const ChartFigure = ({ chart }: { readonly chart: Chart }) => {
  const { bars, unit } = chart;
  const [at, setAt] = useState<number>();
  const style = timeStyle.value;
  const pointed = at === undefined ? undefined : bars[at];
  const most = heightOf(bars);
  const isCut = bars.some(({ count }) => count > most);
  const zoom = (low: number, high: number): void => {
    const [first, last] = [bars[low], bars[high]];
    if (first === undefined || last === undefined) return;
    setAt(undefined);
    zoomTo(first.start, high === bars.length - 1 ? filters.value.end_date : last.end);
  };
  return (
    <>
      <div class="caption">
        <span class="readout">
          {pointed === undefined
            ? `${isCut ? 'Columns are cut at' : 'At most'} ${Math.round(most).toLocaleString('en')} a ${unit}`
            : readoutOf(pointed, unit, style)}
        </span>
        {at === undefined ? null : (
          <button type="button" class="small" onClick={() => zoom(at, at)}>
            Zoom in
          </button>
        )}
        <Steps bars={bars} />
      </div>
      <Columns chart={chart} at={at} onPoint={setAt} onZoom={zoom} />
      <div class="ticks" aria-hidden="true">
        {ticksOf(chart, style).map(([i, text]) => (
          <span key={i} style={{ left: `${(i / bars.length) * 100}%` }}>
            {text}
          </span>
        ))}
      </div>
    </>
  );
};

const REFRESH_MS = 60_000;

/** What comes after the rows were counted is added to the last column. */
const withNew = ({ bars, ...chart }: Chart, rowCount: number): Chart => ({
  ...chart,
  bars: bars.map((bar, i) =>
    i === bars.length - 1 ? { ...bar, count: bar.count + Math.max(0, rowCount - chart.total) } : bar,
  ),
});

/** The rows of the list over its time. */
export const Histogram = () => {
  const [found, setFound] = useState<{ readonly key: string; readonly chart: Chart | undefined }>();
  const [chosen, style] = [filters.value, timeStyle.value];
  const rowCount = total.value;
  const isKnown = rowCount !== undefined && rowCount > 0;
  const key = JSON.stringify([chosen, style]);
  useEffect(() => {
    if (!isKnown || !isNumbered(chosen)) return;
    const abort = new AbortController();
    void loadChart(chosen, style, rowCount, abort.signal).then((chart) => {
      if (!abort.signal.aborted) setFound({ key, chart });
    });
    return () => abort.abort();
  }, [key, isKnown, Math.floor(clock.value / REFRESH_MS)]);
  const chart = found?.key === key && isKnown ? found.chart : undefined;
  const text = (): string => {
    if (!isNumbered(chosen))
      return 'No chart: rows of an operation, an actor, a source or a trace are counted, but not together with another filter.';
    return rowCount === 0 ? 'No rows in this time.' : '';
  };
  return (
    <div class="histogram" role="group" aria-label="Rows over time">
      {chart === undefined ? (
        <div class="caption">
          <span>{text()}</span>
          {isNumbered(chosen) ? <Steps bars={[]} /> : null}
        </div>
      ) : (
        <ChartFigure key={key} chart={withNew(chart, rowCount ?? 0)} />
      )}
    </div>
  );
};
