import { countLogs as logCounts, isNumbered, type LogFilter } from '../../../projections/log-pages';
import { choiceParameter, dateParameter, mustBeInOrder, type ValuesOf } from '../query-parameters';
import { route } from '../route';
import { count, described, listOf, moment, record, text, type Schema } from '../schema';
import { invalid } from '../validation';
import { logFilterOf, logFilters } from './logs';

const INTERVALS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;
type Interval = keyof typeof INTERVALS;
const INTERVAL_NAMES = Object.keys(INTERVALS) as readonly Interval[];
const MAX_INTERVALS = 120;
const DEFAULT_INTERVAL: Interval = 'day';
const DEFAULT_INTERVALS = 30;

const query = {
  interval: choiceParameter(
    `How long each interval is. Default: ${DEFAULT_INTERVAL}.`,
    INTERVAL_NAMES,
    'hour',
  ),
  ...logFilters,
  start_date: dateParameter(
    `Where the first interval starts. Default: ${DEFAULT_INTERVALS} intervals before the end, at a whole one of UTC.`,
  ),
  end_date: dateParameter(`Where the last one ends, at most ${MAX_INTERVALS} intervals later. Default: now.`),
};
type Query = ValuesOf<typeof query>;

/** RFC 3339 has no earlier time. */
const FIRST = Date.parse('0000-01-01');

/** The start, the beginning of each further interval, and the end. */
const momentsOf = (interval: Interval, values: Query, now: string): readonly string[] => {
  const ms = INTERVALS[interval];
  const end = values.end_date ?? now;
  const before = Math.max(FIRST, Date.parse(end) - DEFAULT_INTERVALS * ms);
  const start = values.start_date ?? new Date(Math.floor(before / ms) * ms).toISOString();
  mustBeInOrder({ start_date: start, end_date: end });
  const from = Date.parse(start);
  const intervals = Math.ceil((Date.parse(end) - from) / ms);
  if (intervals > MAX_INTERVALS)
    throw invalid({
      interval: [
        `must be longer: there are ${intervals} between these dates, and at most ${MAX_INTERVALS} are counted`,
      ],
    });
  const inside = Array.from({ length: Math.max(0, intervals - 1) }, (_, i) =>
    new Date(from + (i + 1) * ms).toISOString(),
  );
  return start === end ? [] : [start, ...inside, end];
};

/** Only numbered rows can be counted at the cost of a few lookups. */
const countedFilterOf = (values: Query): LogFilter => {
  const filter = logFilterOf(values);
  if (isNumbered(filter)) return filter;
  const names = (['actor_id', 'operation', 'trace_id', 'source'] as const).filter((name) => values[name]);
  const wrong = ['must be the only filter besides dates: nothing else is counted with it'];
  throw invalid(Object.fromEntries(names.map((name) => [name, wrong])));
};

const countsSchema: Schema = record('LogCounts', {
  interval: described(text, 'As asked for.', 'hour'),
  data: described(
    listOf(
      record('LogCount', {
        start_date: described(
          moment,
          'When the interval starts. It ends with the next one, or with `end_date`.',
        ),
        count: described(count, 'How many rows it has.', 3),
      }),
    ),
    'The intervals, oldest first.',
  ),
});

export const countLogs = route({
  method: 'get',
  path: '/logs/counts',
  summary: 'Count logs over time',
  permission: 'log:read',
  query,
  response: {
    description:
      'How many rows of the audit log there are per minute, hour or day: all, or those of one filter, or of `entity_type` and `entity_id`.',
    schema: countsSchema,
  },
  reads: true,
  handle: async ({ tenantId, at, read, query: values }) => {
    const { interval = DEFAULT_INTERVAL } = values;
    const moments = momentsOf(interval, values, at);
    const filter = countedFilterOf(values);
    const counts = await read((reader) => logCounts(reader, tenantId, filter, moments));
    const data = counts.map((rows, i) => ({ start_date: moments[i], count: rows }));
    return { body: { interval, data } };
  },
});
