import { useState } from 'preact/hooks';
import { call } from './api.js';
import { filterNames, filters, range, RANGES, type Filters } from './filters.js';
import { useLoaded } from './loaded.js';
import { rows } from './log-rows.js';
import { applicationNames, nameOf, OPERATOR, sourceNames } from './names.js';
import { go, timeStyle, withParameters } from './place.js';
import { dayOf, inputText, momentFrom, zoneOf } from './time.js';
import type { EntityType, LogPage } from './wire.js';

const choose = (changes: Readonly<Record<string, string | undefined>>): void =>
  go(withParameters({ ...changes, event: undefined }));

type Option = readonly [value: string, text: string];

interface ChoiceProps {
  readonly label: string;
  readonly name: keyof Filters;
  readonly all: string;
  readonly options: readonly Option[];
}

/** One filter of several values; one that is in the address is a choice, too. */
const Choice = ({ label, name, all, options }: ChoiceProps) => {
  const value = filters.value[name] ?? '';
  const isOther = value !== '' && !options.some(([one]) => one === value);
  const other = [value, name === 'actor_id' ? nameOf('application', value) : value] as const;
  return (
    <label>
      {label}
      <select
        value={value}
        onChange={({ currentTarget }) =>
          choose({ [name]: currentTarget.value === '' ? undefined : currentTarget.value })
        }
      >
        <option value="">{all}</option>
        {[...options, ...(isOther ? [other] : [])].map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
};

const OPERATIONS = ['create', 'read', 'update', 'delete', 'use', 'deny'];

const operations = (): readonly Option[] =>
  [...new Set([...OPERATIONS, ...rows.value.map(({ log }) => log.operation)])].map((one) => [one, one]);

/** The Applications that there are, and whoever else has done something on this page. */
const actors = (): readonly Option[] => {
  const seen = rows.value.flatMap(({ log: { actor_id: id, actor_type: type = '' } }) =>
    id === undefined ? [] : [[id, nameOf(type, id)] as const],
  );
  return [...new Map([[OPERATOR, 'operator'] as const, ...applicationNames.value, ...seen])];
};

const MomentInput = ({ label, name }: { label: string; name: 'start_date' | 'end_date' }) => (
  <label>
    {label}
    <input
      type="datetime-local"
      value={inputText(filters.value[name] ?? '', timeStyle.value)}
      onChange={({ currentTarget: { value } }) =>
        choose({ [name]: momentFrom(value, timeStyle.value), range: undefined })
      }
    />
  </label>
);

/** The times in force: a name for those that end now, otherwise when they begin and end. */
const RangeChoice = () => {
  const { start_date: start, end_date: end } = filters.value;
  const isBetween = range.value === undefined && (start !== undefined || end !== undefined);
  return (
    <>
      <label>
        Time
        <select
          value={isBetween ? 'between' : (range.value?.name ?? '')}
          onChange={({ currentTarget: { value } }) =>
            choose({
              range: value === '' || value === 'between' ? undefined : value,
              start_date: value === 'between' ? dayOf(new Date().toISOString(), timeStyle.value) : undefined,
              end_date: undefined,
            })
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
          <MomentInput label={`From, ${zoneOf(timeStyle.value)}`} name="start_date" />
          <MomentInput label="To" name="end_date" />
        </>
      ) : null}
    </>
  );
};

/** Whether there are rows of an entity with this id; otherwise it is taken for a trace. */
const isEntity = async (id: string): Promise<boolean> => {
  const page = await call<LogPage>(`/logs?${new URLSearchParams({ entity_id: id, size: '1' }).toString()}`);
  return page.ok && page.value.data.length > 0;
};

/** Takes an id from a message, a ticket or another tool, whatever it is of. */
const IdInput = () => {
  const { entity_id, trace_id } = filters.value;
  const current = entity_id ?? trace_id ?? '';
  const [isBusy, setBusy] = useState(false);
  const find = async (text: string): Promise<void> => {
    setBusy(true);
    const id = text.trim();
    const name = id === '' ? undefined : (await isEntity(id)) ? 'entity_id' : 'trace_id';
    choose({ entity_id: undefined, trace_id: undefined, ...(name === undefined ? {} : { [name]: id }) });
    setBusy(false);
  };
  return (
    <label class="id">
      Id or trace
      <input
        id="search"
        type="search"
        key={current}
        defaultValue={current}
        aria-busy={isBusy}
        spellcheck={false}
        autocomplete="off"
        placeholder="Paste one"
        onChange={({ currentTarget }) => void find(currentTarget.value)}
      />
    </label>
  );
};

/** What is shown of the log. */
export const FilterBar = () => {
  const [loaded] = useLoaded<readonly EntityType[]>('/logs/entity-types');
  const types = loaded?.ok === true ? loaded.value : [];
  const none = Object.fromEntries([...filterNames, 'range'].map((name) => [name, undefined]));
  return (
    <div class="choices" role="group" aria-label="Filters">
      <Choice
        label="Entity type"
        name="entity_type"
        all="All"
        options={types.map(({ value, display_name }) => [value, display_name])}
      />
      <Choice label="Operation" name="operation" all="All" options={operations()} />
      <Choice label="Actor" name="actor_id" all="Anybody" options={actors()} />
      <Choice label="Source" name="source" all="All" options={Object.entries(sourceNames)} />
      <RangeChoice />
      <IdInput />
      {Object.keys(filters.value).length === 0 ? null : (
        <a class="button" href={withParameters({ ...none, event: undefined })}>
          Clear
        </a>
      )}
    </div>
  );
};
