import { effect, signal } from '@preact/signals';
import { session } from './api.js';
import { expiresSoon } from './key-state.js';
import { useAsked } from './loaded.js';
import { loadNamed } from './names.js';
import { Ago, Choice, counted, Table, Time, Waiting, type Cells } from './parts.js';
import { addressOf } from './place.js';
import type { Application, ApplicationType } from './wire.js';

const PAGE_SIZE = 50;

/** Kept while somebody looks at one of them, and not in the address: what is pasted may be a key. */
const search = signal('');
const type = signal<'all' | ApplicationType>('all');
const order = signal<Order>('newest');
const page = signal(0);
effect(() => {
  if (session.value.status === 'signed_out') search.value = '';
});

const lastUse = ({ keys }: Application): string | undefined =>
  keys
    .flatMap(({ last_used_at: used }) => used ?? [])
    .toSorted()
    .at(-1);

const nextExpiry = ({ keys }: Application): string | undefined =>
  keys.flatMap(({ expires_at: expires }) => expires ?? []).toSorted()[0];

const TYPES = { all: 'all types', public: 'public', private: 'private', management: 'management' };
const ORDERS = {
  newest: 'newest first',
  name: 'by name',
  used: 'last used first',
  expiry: 'next expiry first',
};
type Order = keyof typeof ORDERS;

const SORT_TEXTS: Readonly<Record<Order, (one: Application) => string>> = {
  newest: (one) => one.created_at,
  name: (one) => one.name.toLowerCase(),
  used: (one) => lastUse(one) ?? '',
  expiry: (one) => nextExpiry(one) ?? 'never',
};

const sorted = (all: readonly Application[]): readonly Application[] => {
  const textOf = SORT_TEXTS[order.value];
  const direction = order.value === 'newest' || order.value === 'used' ? -1 : 1;
  return all.toSorted((one, other) => (textOf(one) < textOf(other) ? -direction : direction));
};

const isFound = ({ id, name, type: kind, keys }: Application): boolean => {
  const sought = search.value.trim().toLowerCase();
  const texts = [id, name, ...keys.flatMap((key) => [key.id, key.name ?? ''])];
  return (
    (type.value === 'all' || kind === type.value) && texts.some((text) => text.toLowerCase().includes(sought))
  );
};

const cellsOf = (application: Application): Cells => {
  const { id, name, type: kind, keys, created_at: created } = application;
  return [
    <a href={addressOf('applications', { id })}>{name}</a>,
    kind,
    keys.length,
    <span class={keys.some(expiresSoon) ? 'warn' : ''}>
      <Ago at={nextExpiry(application)} />
    </span>,
    <Ago at={lastUse(application)} />,
    <Time at={created} precision="year" />,
  ];
};

/** There are at most a thousand, so the browser has all of them, and looks for them itself. */
export const ApplicationList = () => {
  const { loaded, value: all } = useAsked('all', loadNamed);
  if (all === undefined) return <Waiting loaded={loaded} />;
  const found = sorted(all.filter(isFound));
  const pages = Math.max(1, Math.ceil(found.length / PAGE_SIZE));
  const at = Math.min(page.value, pages - 1);
  return (
    <section class="card fixed">
      <div class="choices">
        <input
          type="search"
          aria-label="Search"
          value={search.value}
          placeholder="Name, key or id"
          dir="auto"
          onInput={({ currentTarget }) => (search.value = currentTarget.value)}
        />
        <Choice label="Type" chosen={type} options={TYPES} />
        <Choice label="Order" chosen={order} options={ORDERS} />
      </div>
      <Table
        titles={['Name', 'Type', 'Keys', 'Next expiry', 'Last used', 'Created']}
        rows={found.slice(at * PAGE_SIZE, (at + 1) * PAGE_SIZE).map(cellsOf)}
      />
      <div class="head">
        <p class="quiet" role="status">
          {found.length < all.length ? `${found.length} of ` : ''}
          {counted(all.length, 'Application')}{' '}
          {found.length === 0 ? (
            <button class="small" onClick={() => ([search.value, type.value] = ['', 'all'])}>
              Show all
            </button>
          ) : null}
        </p>
        {pages === 1 ? null : (
          <div class="buttons">
            <button disabled={at === 0} onClick={() => (page.value = at - 1)}>
              Previous
            </button>
            Page {at + 1} of {pages}
            <button disabled={at + 1 === pages} onClick={() => (page.value = at + 1)}>
              Next
            </button>
          </div>
        )}
      </div>
    </section>
  );
};
