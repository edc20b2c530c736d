import { computed } from '@preact/signals';
import { parameter, timeStyle } from './place.js';
import { remembered } from './remembered.js';
import { DAY_MS, HOUR_MS, momentFrom } from './time.js';

/** The filters of the log, by their names in the API and in the address. */
export const filterNames = [
  'entity_type',
  'entity_id',
  'operation',
  'actor_id',
  'trace_id',
  'source',
  'start_date',
  'end_date',
] as const;
type FilterName = (typeof filterNames)[number];
export type Filters = Readonly<Partial<Record<FilterName, string>>>;

/** Those that are neither a time nor a scope. */
export const subjects = filterNames.slice(0, 5);

const without = (names: readonly string[]): Readonly<Record<string, undefined>> =>
  Object.fromEntries([...names, 'event'].map((name) => [name, undefined]));
/** What takes them away, the times, or all filters. */
export const NO_SUBJECT = without([...subjects, 'source']);
export const ALL_TIME = without(['start_date', 'end_date', 'range']);
export const UNFILTERED = { ...NO_SUBJECT, ...ALL_TIME };

/** Times that end now, by their names in the address. */
export const RANGES: readonly (readonly [string, string, number])[] = [
  ['1h', 'Last hour', HOUR_MS],
  ['24h', 'Last 24 hours', DAY_MS],
  ['7d', 'Last 7 days', 7 * DAY_MS],
  ['30d', 'Last 30 days', 30 * DAY_MS],
];

const rangeName = computed(() => parameter('range'));
/** The range that is chosen. It begins when it is chosen, not each time that something else changes. */
export const range = computed(() => {
  const [name, , ms] = RANGES.find(([one]) => one === rangeName.value) ?? [];
  return ms === undefined ? undefined : { name, start: new Date(Date.now() - ms).toISOString() };
});

/** What rows are about: a source, or all. What it is called, and what that means. */
export const SCOPES = {
  all: ['All', 'Everything'],
  decision: ['Changes', 'What was decided here'],
  access: ['Access', 'What keys were used for and refused'],
  fact: ['Facts', 'What other services have reported'],
} as const;
export type Scope = keyof typeof SCOPES;
const scopes = ['decision', 'access', 'fact', 'all'] as const;
/** The one that was chosen last is shown until another filter is chosen. */
export const lastScope = remembered<Scope>('scope', scopes);
export const hasSubject = computed(() => subjects.some((name) => (parameter(name) ?? '') !== ''));
export const scope = computed<Scope>(
  () =>
    scopes.find((one) => one === parameter('source')) ??
    (hasSubject.value || parameter('source') !== undefined ? 'all' : lastScope.value),
);

/** A day alone begins where the viewer is. What is no time is left for the service to refuse. */
const valueOf = (name: FilterName): string | undefined => {
  const value = parameter(name);
  if (name === 'source') return scope.value === 'all' ? undefined : scope.value;
  if (name === 'start_date' && range.value !== undefined) return range.value.start;
  if (name !== 'start_date' && name !== 'end_date') return value;
  return value === undefined ? undefined : (momentFrom(value, timeStyle.value) ?? value);
};

export const filters = computed<Filters>(() =>
  Object.fromEntries(
    filterNames.flatMap((name) => {
      const value = valueOf(name);
      return value === undefined || value === '' ? [] : [[name, value] as const];
    }),
  ),
);

export const queryOf = (chosen: Filters, more: Readonly<Record<string, string>> = {}): string =>
  new URLSearchParams({ ...chosen, ...more }).toString();

/** Rows are numbered for each filter, and for an entity and a type: only of these there are totals and counts. */
export const isNumbered = (chosen: Filters): boolean => {
  const { entity_type, entity_id, operation, actor_id, trace_id, source } = chosen;
  const given = (values: readonly unknown[]) => values.filter((value) => value !== undefined).length;
  const alone = given([operation, actor_id, trace_id, source]);
  return alone === 0 || (alone === 1 && given([entity_type, entity_id]) === 0);
};
