import { useEffect, useRef, useState } from 'preact/hooks';
import { call } from './api.js';
import { filters, type Filters } from './filters.js';
import { total } from './log-rows.js';
import { go, timeStyle, withParameters } from './place.js';
import { timeText } from './time.js';
import type { LogCounts } from './wire.js';

const INTERVALS: readonly (readonly [string, number])[] = [
  ['minute', 60_000],
  ['hour', 3_600_000],
  ['day', 86_400_000],
];
const MAX_INTERVALS = 120;
const DEFAULT_MS = 30 * 86_400_000;

interface Range {
  readonly interval: string;
  readonly from: number;
  readonly upTo: number;
}

/** The shortest interval that covers the chosen time; of a long time, the last 120 days. */
const rangeOf = ({ start_date, end_date }: Filters, now: number): Range => {
  const upTo = end_date === undefined ? now : Date.parse(end_date);
  const wanted = start_date === undefined ? upTo - DEFAULT_MS : Date.parse(start_date);
  const [interval, ms] = INTERVALS.find(([, one]) => (upTo - wanted) / one < MAX_INTERVALS - 1) ?? [
    'day',
    86_400_000,
  ];
  return { interval, from: Math.max(wanted, upTo - (MAX_INTERVALS - 2) * ms), upTo };
};

/** Only what is numbered can be counted, and only between times. */
const isCountable = ({ operation, actor_id, trace_id, start_date, end_date }: Filters): boolean =>
  [operation, actor_id, trace_id].every((value) => value === undefined) &&
  [start_date, end_date].every((date) => date === undefined || !Number.isNaN(Date.parse(date)));

interface Bar {
  readonly start: string;
  readonly end: string;
  readonly count: number;
}

interface Counts {
  readonly bars: readonly Bar[];
  readonly interval: string;
}

const WIDTH = 1_000;
const HEIGHT = 60;

const mostOf = (bars: readonly Bar[]): number => Math.max(0, ...bars.map(({ count }) => count));

const zoomTo = (from: string, upTo: string): void =>
  go(withParameters({ start_date: from, end_date: upTo, event: undefined }));

interface BarProps {
  readonly bar: Bar;
  readonly at: number;
  readonly width: number;
  readonly most: number;
}

const BarOf = ({ bar: { start, count }, at, width, most }: BarProps) => {
  const height = count === 0 ? 0 : Math.max(2, (count / most) * (HEIGHT - 2));
  const x = at * width + width * 0.1;
  return (
    <rect class="bar" x={x} y={HEIGHT - height} width={width * 0.8} height={height}>
      <title>{`${timeText(start, timeStyle.value === 'utc' ? 'utc' : 'local', 0)}: ${count}`}</title>
    </rect>
  );
};

const Bars = ({ bars }: { readonly bars: readonly Bar[] }) => {
  const ref = useRef<SVGSVGElement>(null);
  const [drag, setDrag] = useState<readonly [number, number]>();
  const most = Math.max(1, mostOf(bars));
  const width = WIDTH / bars.length;
  const indexAt = ({ clientX }: PointerEvent): number => {
    const box = ref.current?.getBoundingClientRect() ?? { left: 0, width: 1 };
    return Math.max(
      0,
      Math.min(bars.length - 1, Math.floor(((clientX - box.left) / box.width) * bars.length)),
    );
  };
  const [low, high] = drag === undefined ? [0, -1] : drag.toSorted((a, b) => a - b);
  const finish = (): void => {
    const [first, last] = [bars[low ?? 0], bars[high ?? 0]];
    setDrag(undefined);
    if (drag !== undefined && first !== undefined && last !== undefined) zoomTo(first.start, last.end);
  };
  return (
    <svg
      ref={ref}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`Rows over time, ${most} at most in an interval. The table has the same figures.`}
      onPointerDown={(event) => {
        ref.current?.setPointerCapture(event.pointerId);
        const at = indexAt(event);
        setDrag([at, at]);
      }}
      onPointerMove={(event) => drag !== undefined && setDrag([drag[0], indexAt(event)])}
      onPointerUp={finish}
      onPointerCancel={() => setDrag(undefined)}
    >
      {drag === undefined ? null : (
        <rect
          class="chosen"
          x={(low ?? 0) * width}
          y={0}
          width={((high ?? 0) - (low ?? 0) + 1) * width}
          height={HEIGHT}
        />
      )}
      {bars.map((bar, i) => (
        <BarOf key={bar.start} bar={bar} at={i} width={width} most={most} />
      ))}
    </svg>
  );
};

const Table = ({ bars }: { readonly bars: readonly Bar[] }) => (
  <div class="chart-table" tabIndex={0} role="region" aria-label="Rows over time as a table">
    <table>
      <thead>
        <tr>
          <th scope="col">From</th>
          <th scope="col">Rows</th>
          <th scope="col">
            <span class="hidden">Zoom</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {bars.toReversed().map(({ start, end, count }) => (
          <tr key={start}>
            <td>{timeText(start, timeStyle.value === 'utc' ? 'utc' : 'local', 0)}</td>
            <td class="number">{count.toLocaleString('en')}</td>
            <td>
              <button type="button" class="small" onClick={() => zoomTo(start, end)}>
                Zoom in
              </button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

/** Rows over the chosen time. Drag over it to zoom; the table does the same by keyboard. */
export const Histogram = () => {
  const [{ bars, interval: unit }, setCounts] = useState<Counts>({ bars: [], interval: '' });
  const [isTable, setTable] = useState(false);
  const chosen = filters.value;
  const { entity_type, entity_id, start_date, end_date } = chosen;
  const isShown = isCountable(chosen);
  useEffect(() => {
    if (!isShown) return;
    const abort = new AbortController();
    const { interval, from, upTo } = rangeOf(chosen, Date.now());
    const query = new URLSearchParams({
      interval,
      start_date: new Date(from).toISOString(),
      end_date: new Date(upTo).toISOString(),
      ...(entity_type === undefined ? {} : { entity_type }),
      ...(entity_id === undefined ? {} : { entity_id }),
    }).toString();
    void call<LogCounts>(`/logs/counts?${query}`, { signal: abort.signal }).then((found) => {
      if (abort.signal.aborted || !found.ok) return;
      const { data } = found.value;
      const end = new Date(upTo).toISOString();
      const counted = data.map(({ start_date: start, count }, i) => ({
        start,
        count,
        end: data[i + 1]?.start_date ?? end,
      }));
      setCounts({ bars: counted, interval });
    });
    return () => abort.abort();
    // New rows change the last bar: the total says that there are some.
  }, [entity_type, entity_id, start_date, end_date, isShown, total.value]);
  if (!isShown || bars.length === 0) return null;
  const ends = [bars[0]?.start ?? '', bars.at(-1)?.end ?? ''];
  return (
    <figure class="histogram">
      {isTable ? <Table bars={bars} /> : <Bars bars={bars} />}
      <figcaption>
        <span>{timeText(ends[0] ?? '', timeStyle.value === 'utc' ? 'utc' : 'local', 0)}</span>
        <span>
          at most {mostOf(bars).toLocaleString('en')} a {unit}{' '}
          <button type="button" class="small" onClick={() => setTable(!isTable)} aria-pressed={isTable}>
            {isTable ? 'Show as chart' : 'Show as table'}
          </button>
        </span>
        <span>{timeText(ends[1] ?? '', timeStyle.value === 'utc' ? 'utc' : 'local', 0)}</span>
      </figcaption>
    </figure>
  );
};
