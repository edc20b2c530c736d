import { useState } from 'preact/hooks';
import { completions, filterNames, filters, parseSearch, words, type FilterName } from './filters.js';
import { useLoaded } from './loaded.js';
import { rows } from './log-rows.js';
import { nameOf } from './names.js';
import { go, timeStyle, withParameters } from './place.js';
import { timeText } from './time.js';
import type { EntityType } from './wire.js';

const unique = (values: readonly (string | undefined)[]): readonly string[] =>
  [...new Set(values.filter((value) => value !== undefined))].slice(0, 20);

/** What the Tenant's entity types and the rows on the page suggest. */
const suggestions = (entityTypes: readonly EntityType[]) => ({
  entity_type: entityTypes.map(({ value }) => value),
  operation: unique([
    'create',
    'read',
    'update',
    'delete',
    'use',
    'deny',
    ...rows.value.map((row) => row.operation),
  ]),
  entity_id: unique(rows.value.map((row) => row.entity_id)),
  actor_id: unique(rows.value.map((row) => row.actor_id)),
  start_date: ['1h', '24h', '7d', '30d'],
});

const MAX_SHOWN = 8;

interface Suggesting {
  readonly text: string;
  readonly chosen: number;
}

/** What is typed, what could follow, and what is wrong with it. */
const useSearch = () => {
  const [{ text, chosen }, setState] = useState<Suggesting>({ text: '', chosen: -1 });
  const [wrong, setWrong] = useState<string>();
  const [isOpen, setOpen] = useState(false);
  const [loaded] = useLoaded<readonly EntityType[]>('/logs/entity-types');
  const entityTypes = loaded?.ok === true ? loaded.value : [];
  const options = isOpen ? completions(text, suggestions(entityTypes)).slice(0, MAX_SHOWN) : [];
  const search = (): void => {
    const parsed = parseSearch(text);
    if ('wrong' in parsed) return setWrong(parsed.wrong);
    setWrong(undefined);
    setState({ text: '', chosen: -1 });
    setOpen(false);
    if (text.trim() !== '') go(withParameters({ ...parsed.filters, event: undefined }));
  };
  const accept = (option: string): void => setState({ text: option, chosen: -1 });
  const onKeyDown = (event: KeyboardEvent): void => {
    const option = options[chosen];
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      const step = event.key === 'ArrowDown' ? 1 : -1;
      setState({ text, chosen: Math.max(-1, Math.min(options.length - 1, chosen + step)) });
    } else if (event.key === 'Tab' && option !== undefined) {
      event.preventDefault();
      accept(option);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      if (option === undefined) search();
      else accept(option);
    } else if (event.key === 'Escape') {
      event.stopPropagation();
      setOpen(false);
      (event.target as HTMLElement).blur();
    }
  };
  return {
    text,
    chosen,
    wrong,
    options,
    accept,
    onKeyDown,
    setOpen,
    onInput: (value: string) => {
      setState({ text: value, chosen: -1 });
      setOpen(true);
    },
  };
};

interface SuggestionsProps {
  readonly options: readonly string[];
  readonly chosen: number;
  readonly onAccept: (option: string) => void;
}

const Suggestions = ({ options, chosen, onAccept }: SuggestionsProps) => (
  <ul id="suggestions" role="listbox" aria-label="Suggestions" hidden={options.length === 0}>
    {options.map((option, i) => (
      <li
        key={option}
        id={`suggestion-${i}`}
        role="option"
        aria-selected={i === chosen}
        onMouseDown={(event) => {
          event.preventDefault();
          onAccept(option);
        }}
      >
        {option}
      </li>
    ))}
  </ul>
);

export const SearchBox = () => {
  const { text, chosen, wrong, options, accept, onKeyDown, setOpen, onInput } = useSearch();
  return (
    <div class="search">
      <input
        id="search"
        type="text"
        role="combobox"
        aria-label="Search the log"
        aria-expanded={options.length > 0}
        aria-controls="suggestions"
        aria-autocomplete="list"
        aria-activedescendant={chosen >= 0 ? `suggestion-${chosen}` : undefined}
        aria-describedby={wrong === undefined ? undefined : 'search-wrong'}
        placeholder="entity_type:token operation:create since:24h"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onInput={({ currentTarget }) => onInput(currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <Suggestions options={options} chosen={chosen} onAccept={accept} />
      {wrong === undefined ? null : (
        <p id="search-wrong" class="alert" role="alert">
          {wrong}
        </p>
      )}
    </div>
  );
};

const shownValue = (name: FilterName, value: string): string => {
  if (name === 'start_date' || name === 'end_date')
    return timeText(value, timeStyle.value === 'relative' ? 'local' : timeStyle.value, Date.now());
  return name === 'actor_id' || name === 'entity_id' ? nameOf('', value) : value;
};

const RANGES: readonly (readonly [string, number | undefined])[] = [
  ['All time', undefined],
  ['Last hour', 3_600_000],
  ['Last 24 hours', 86_400_000],
  ['Last 7 days', 7 * 86_400_000],
  ['Last 30 days', 30 * 86_400_000],
];

const RangeChoice = () => (
  <label class="inline">
    <span class="hidden">Time range</span>
    <select
      value=""
      onChange={({ currentTarget }) => {
        const ms = RANGES[Number(currentTarget.value)]?.[1];
        currentTarget.value = '';
        const start = ms === undefined ? undefined : new Date(Date.now() - ms).toISOString();
        go(withParameters({ start_date: start, end_date: undefined, event: undefined }));
      }}
    >
      <option value="" disabled hidden>
        Time range
      </option>
      {RANGES.map(([text], i) => (
        <option key={text} value={String(i)}>
          {text}
        </option>
      ))}
    </select>
  </label>
);

/** The filters in force. Each can be taken away. */
export const FilterChips = () => {
  const chosen = filterNames.flatMap((name) => {
    const value = filters.value[name];
    return value === undefined ? [] : [{ name, value }];
  });
  return (
    <div class="chips" role="group" aria-label="Filters">
      <RangeChoice />
      {chosen.map(({ name, value }) => (
        <a
          key={name}
          class="chip"
          href={withParameters({ [name]: undefined, event: undefined })}
          title={value}
          aria-label={`Remove the filter ${words[name]}: ${shownValue(name, value)}`}
        >
          <span class="chip-name">{words[name]}</span> {shownValue(name, value)}{' '}
          <span aria-hidden="true">×</span>
        </a>
      ))}
      {chosen.length > 1 ? (
        <a
          class="quiet"
          href={withParameters({
            ...Object.fromEntries(filterNames.map((name) => [name, undefined])),
            event: undefined,
          })}
        >
          Clear all
        </a>
      ) : null}
    </div>
  );
};
