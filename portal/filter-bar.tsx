import { useId, useState } from 'preact/hooks';
import { ALL_TIME, filters, range, RANGES, UNFILTERED, type Filters } from './filters.js';
import { useLoaded } from './loaded.js';
import { rows } from './log-rows.js';
import { MomentInput } from './moment-input.js';
import { actorOf, applicationNames, askForApplications, nameOf, OPERATOR, shortId } from './names.js';
import { go, timeStyle, withParameters } from './place.js';
import { SearchField } from './search-field.js';
import { dayOf, zoneOf } from './time.js';
import { titleOf, wordsOf } from './words.js';
import type { EntityType } from './wire.js';

type Option = readonly [value: string, text: string];

/** Each choice is one entry in the history. With a filter, all sources are looked at until one is chosen again. */
export const choose = (changes: Readonly<Record<string, string | undefined>>): void =>
  go(withParameters({ source: undefined, ...changes, event: undefined }));

const OPERATIONS = ['create', 'read', 'update', 'delete', 'use', 'deny'];

const operations = (): readonly Option[] => {
  const all = new Set([...OPERATIONS, ...rows.value.map(({ log }) => log.operation)]);
  return [...all].map((one) => [one, titleOf(one)]);
};

/** The Applications that there are, and whoever else has done something on this page. Equal names have their ids, too. */
const actors = (chosen: string | undefined): readonly Option[] => {
  const seen = rows.value.map(({ log }) => [log.actor_id ?? '', actorOf(log)] as const);
  const given = chosen === undefined ? [] : [[chosen, nameOf('application', chosen)] as const];
  const all = new Map([...given, [OPERATOR, 'operator'] as const, ...seen, ...applicationNames.value]);
  all.delete('');
  const uses = Map.groupBy(all.values(), (name) => name);
  return [...all].map(([id, name]) => [id, uses.get(name)?.length === 1 ? name : `${name}, ${shortId(id)}`]);
};

interface ChoiceProps {
  readonly label: string;
  readonly name: keyof Filters;
  readonly all: string;
  readonly options: readonly Option[];
}

/** One of many, found by typing a part of it. */
const Choice = ({ label, name, all, options }: ChoiceProps) => {
  const id = useId();
  const value = filters.value[name];
  const chosen = value === undefined ? '' : (options.find(([one]) => one === value)?.[1] ?? value);
  const pick = (input: HTMLInputElement): void => {
    const typed = input.value.trim().toLowerCase();
    const like = options.filter(([, text]) => text.toLowerCase().includes(typed));
    const same = options.find((option) => option.some((text) => text.toLowerCase() === typed));
    const [found] = same ?? (like.length === 1 ? like[0] : undefined) ?? [];
    if (found !== undefined || typed === all.toLowerCase()) choose({ [name]: found });
    input.blur();
  };
  return (
    <label>
      {label}
      <input
        list={id}
        key={chosen}
        class={value === undefined ? '' : 'set'}
        defaultValue={chosen}
        placeholder={chosen === '' ? all : chosen}
        autocomplete="off"
        // Otherwise the list would only offer what is chosen already.
        onFocus={({ currentTarget }) => {
          currentTarget.value = '';
          void askForApplications();
        }}
        onBlur={({ currentTarget }) => (currentTarget.value = chosen)}
        // What is typed is chosen by Enter, what is picked from the list at once.
        onInput={(event) =>
          'inputType' in event && event.inputType !== 'insertReplacementText'
            ? undefined
            : pick(event.currentTarget)
        }
        onKeyDown={({ key, currentTarget }) => key === 'Enter' && pick(currentTarget)}
      />
      <datalist id={id}>
        {[all, ...options.map(([, text]) => text)].map((text) => (
          <option key={text} value={text} />
        ))}
      </datalist>
    </label>
  );
};

/** The times in force: a name for those that end now, otherwise when they begin and end. */
const RangeChoice = () => {
  const { start_date: start, end_date: end } = filters.value;
  const isBetween = range.value === undefined && (start !== undefined || end !== undefined);
  const today = () => dayOf(new Date().toISOString(), timeStyle.value);
  const between = (name: 'start_date' | 'end_date', label: string) => (
    <MomentInput
      label={label}
      moment={filters.value[name]}
      onChoose={(moment) => go(withParameters({ [name]: moment, range: undefined, event: undefined }))}
    />
  );
  return (
    <>
      <label>
        Time
        <select
          value={isBetween ? 'between' : (range.value?.name ?? '')}
          onChange={({ currentTarget: { value } }) =>
            go(
              withParameters({
                ...ALL_TIME,
                ...(value === 'between' ? { start_date: today() } : { range: value || undefined }),
              }),
            )
          }
        >
          <option value="">All time</option>
          {RANGES.map(([name, text]) => (
            <option key={name} value={name}>
              {text}
            </option>
          ))}
          <option value="between">From … to …</option>
        </select>
      </label>
      {isBetween ? (
        <>
          {between('start_date', `From, ${zoneOf(timeStyle.value)}`)}
          {between('end_date', 'To')}
        </>
      ) : null}
    </>
  );
};

/** What an id of an entity or a request stands for; a click takes it away. */
const Chips = () => {
  const { entity_id: id, trace_id: trace } = filters.value;
  const type = filters.value.entity_type ?? rows.value[0]?.log.entity_type ?? 'entity';
  const chip = (what: string, text: string, gone: Readonly<Record<string, undefined>>) => (
    <button type="button" class="set" title={`No longer ${text}`} onClick={() => choose(gone)}>
      ×
      <bdi class="chip">
        {text.startsWith(`${what} `) ? '' : `${what} `}
        {text}
      </bdi>
    </button>
  );
  return (
    <>
      {id && chip(wordsOf(type), nameOf(type, id), { entity_id: undefined, entity_type: undefined })}
      {trace && chip('request', trace, { trace_id: undefined })}
    </>
  );
};

/** What is shown of the log. On a phone, all but the search is behind one button. */
export const FilterBar = () => {
  const { value: types = [] } = useLoaded<readonly EntityType[]>('/logs/entity-types');
  const [isOpen, setOpen] = useState(false);
  const { source: _source, ...chosen } = filters.value;
  const count = Object.keys(chosen).length;
  return (
    <div class="choices" role="group" aria-label="Filters">
      <SearchField />
      <button type="button" class="narrow-only" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Filters{count === 0 ? '' : ` (${count})`}
      </button>
      <div class={isOpen ? 'more open' : 'more'}>
        <Choice
          label="Entity type"
          name="entity_type"
          all="All"
          options={types.map(({ value, display_name }) => [value, display_name])}
        />
        <Choice label="Operation" name="operation" all="All" options={operations()} />
        <Choice label="Actor" name="actor_id" all="Anybody" options={actors(filters.value.actor_id)} />
        <RangeChoice />
      </div>
      <Chips />
      {count === 0 ? null : (
        <a class="button" href={withParameters(UNFILTERED)}>
          Clear
        </a>
      )}
    </div>
  );
};
