import { computed } from '@preact/signals';
import { momentFrom } from './time.js';
import { place } from './place.js';

/** The filters of the log, by their names in the API and in the address. */
export const filterNames = [
  'entity_type',
  'entity_id',
  'operation',
  'actor_id',
  'trace_id',
  'start_date',
  'end_date',
] as const;
export type FilterName = (typeof filterNames)[number];
export type Filters = Readonly<Partial<Record<FilterName, string>>>;

/** As people write them in the search box. */
export const words: Readonly<Record<FilterName, string>> = {
  entity_type: 'entity_type',
  entity_id: 'entity_id',
  operation: 'operation',
  actor_id: 'actor',
  trace_id: 'trace',
  start_date: 'since',
  end_date: 'until',
};

export const filters = computed<Filters>(() => {
  const found = filterNames.flatMap((name) => {
    const value = place.value.parameters.get(name);
    return value === null || value === '' ? [] : [[name, value] as const];
  });
  return Object.fromEntries(found);
});

export const queryOf = (chosen: Filters, more: Readonly<Record<string, string>> = {}): string =>
  new URLSearchParams({ ...chosen, ...more }).toString();

const nameOfWord = (word: string): FilterName | undefined =>
  filterNames.find((name) => words[name] === word.toLowerCase() || name === word.toLowerCase());

export type Parsed = { readonly filters: Filters } | { readonly wrong: string };

const TERM = /([a-z_]+):(?:"([^"]*)"|(\S*))|(\S+)/gi;

/** Reads `operation:update since:24h`. */
export const parseSearch = (text: string): Parsed => {
  const found: Partial<Record<FilterName, string>> = {};
  for (const [, word, quoted, plain, stray] of text.matchAll(TERM)) {
    const name = word === undefined ? undefined : nameOfWord(word);
    if (stray !== undefined || name === undefined)
      return { wrong: `“${stray ?? word}” is not a filter. Use ${Object.values(words).join(': ')}:` };
    const value = quoted ?? plain ?? '';
    if (value === '') return { wrong: `${words[name]}: needs a value.` };
    const isDate = name === 'start_date' || name === 'end_date';
    const moment = isDate ? momentFrom(value) : value;
    if (moment === undefined)
      return {
        wrong: `${words[name]}: takes a date like 2026-01-31, a time like 2026-01-31T12:00Z, or 24h for 24 hours ago.`,
      };
    found[name] = moment;
  }
  return { filters: found };
};

/** What may follow what was typed so far. */
export const completions = (
  text: string,
  values: Readonly<Partial<Record<FilterName, readonly string[]>>>,
): readonly string[] => {
  const [, before = '', term = ''] = /^(.*?)(\S*)$/.exec(text) ?? [];
  const [, word, start = ''] = /^([a-z_]+):(.*)$/i.exec(term) ?? [];
  if (word === undefined)
    return Object.values(words)
      .filter((one) => one.startsWith(term.toLowerCase()))
      .map((one) => `${before}${one}:`);
  const name = nameOfWord(word);
  return (name === undefined ? [] : (values[name] ?? []))
    .filter((value) => value.toLowerCase().startsWith(start.toLowerCase()) && value !== start)
    .map((value) => `${before}${word}:${/\s/.test(value) ? `"${value}"` : value}`);
};
