import { effect, signal, type Signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { loadApplications } from './all-applications.js';
import { session } from './api.js';
import { expiresSoon } from './key-state.js';
import { useAsked } from './loaded.js';
import { learnApplications } from './names.js';
import { Ago, Alert, counted, TableHead, Time } from './parts.js';
import { addressOf } from './place.js';
import type { Application } from './wire.js';

const PAGE_SIZE = 50;

/** Kept while somebody looks at one of them, and not in the address: what is pasted may be a key. */
const [search, type, order, page] = [signal(''), signal(''), signal(''), signal(0)];
effect(() => {
  if (session.value.status === 'signed_out') [search.value, type.value, order.value] = ['', '', ''];
});

const choose = (choice: Signal<string>, text: string): void => void ([choice.value, page.value] = [text, 0]);

const lastUse = ({ keys }: Application): string | undefined =>
  keys
    .flatMap(({ last_used_at: used }) => used ?? [])
    .toSorted()
    .at(-1);

const nextExpiry = ({ keys }: Application): string | undefined =>
  keys.flatMap(({ expires_at: expires }) => expires ?? []).toSorted()[0];

/** By what they are sorted, and in which direction. */
const ORDERS: Readonly<Record<string, readonly [1 | -1, (one: Application) => string]>> = {
  'newest first': [-1, (one) => one.created_at],
  'by name': [1, (one) => one.name.toLowerCase()],
  'last used first': [-1, (one) => lastUse(one) ?? ''],
  'next expiry first': [1, (one) => nextExpiry(one) ?? 'never'],
};

const sorted = (all: readonly Application[]): readonly Application[] => {
  const [direction, textOf] = ORDERS[order.value] ?? [-1, (one) => one.created_at];
  return all.toSorted((one, other) => (textOf(one) < textOf(other) ? -direction : direction));
};

const isFound = ({ id, name, type: kind, keys }: Application): boolean => {
  const sought = search.value.trim().toLowerCase();
  const texts = [id, name, ...keys.flatMap((key) => [key.id, key.name ?? ''])];
  return (
    (type.value === '' || kind === type.value) && texts.some((text) => text.toLowerCase().includes(sought))
  );
};

interface ChoiceProps {
  readonly label: string;
  readonly chosen: Signal<string>;
  readonly options: readonly string[];
}

const Choice = ({ label, chosen, options }: ChoiceProps) => (
  <label>
    {label}
    <select value={chosen.value} onChange={({ currentTarget }) => choose(chosen, currentTarget.value)}>
      {options.map((option, i) => (
        <option key={option} value={i === 0 ? '' : option}>
          {option}
        </option>
      ))}
    </select>
  </label>
);

const Row = ({ application }: { readonly application: Application }) => {
  const { id, name, type: kind, keys, created_at: created } = application;
  const [used, expires] = [lastUse(application), nextExpiry(application)];
  return (
    <tr>
      <th scope="row" dir="auto">
        <a href={addressOf('applications', { id })}>{name}</a>
      </th>
      <td data-label="Type">{kind}</td>
      <td data-label="Keys">{keys.length}</td>
      <td data-label="Next expiry" class={keys.some(expiresSoon) ? 'warn' : ''}>
        {expires === undefined ? <span class="quiet">none</span> : <Ago at={expires} />}
      </td>
      <td data-label="Last used">
        {used === undefined ? <span class="quiet">never</span> : <Ago at={used} />}
      </td>
      <td data-label="Created">
        <Time at={created} precision="year" />
      </td>
    </tr>
  );
};

const Pages = ({ found }: { readonly found: number }) => {
  const pages = Math.ceil(found / PAGE_SIZE);
  if (pages < 2) return null;
  return (
    <div class="buttons">
      <button type="button" disabled={page.value === 0} onClick={() => (page.value -= 1)}>
        Previous
      </button>
      Page {page.value + 1} of {pages}
      <button type="button" disabled={page.value + 1 >= pages} onClick={() => (page.value += 1)}>
        Next
      </button>
    </div>
  );
};

/** There are at most a thousand, so the browser has all of them, and looks for them itself. */
export const ApplicationList = () => {
  const [all] = useAsked('all', (abort) => loadApplications(undefined, abort));
  useEffect(() => {
    if (typeof all === 'object') learnApplications(all);
  }, [all]);
  if (all === undefined) return <p class="quiet">Loading …</p>;
  if (typeof all === 'string') return <Alert text={all} />;
  const found = sorted(all.filter(isFound));
  return (
    <section class="card">
      <div class="choices">
        <label class="id">
          Search
          <input
            type="search"
            value={search.value}
            placeholder="Name, key or id"
            dir="auto"
            onInput={({ currentTarget }) => choose(search, currentTarget.value)}
          />
        </label>
        <Choice label="Type" chosen={type} options={['all types', 'public', 'private', 'management']} />
        <Choice label="Order" chosen={order} options={Object.keys(ORDERS)} />
      </div>
      <table class="stacked flow">
        <TableHead titles={['Name', 'Type', 'Keys', 'Next expiry', 'Last used', 'Created']} />
        <tbody>
          {found.slice(page.value * PAGE_SIZE, (page.value + 1) * PAGE_SIZE).map((one) => (
            <Row key={one.id} application={one} />
          ))}
        </tbody>
      </table>
      <div class="head">
        <p class="quiet" role="status">
          {found.length < all.length ? `${found.length} of ` : ''}
          {counted(all.length, 'Application')}
        </p>
        <Pages found={found.length} />
      </div>
    </section>
  );
};
