import { effect, signal } from '@preact/signals';
import { call, holds, session } from './api.js';
import type { ApplicationPage } from './wire.js';

/** The names of Applications by id, so that people need not read UUIDs. */
const names = signal<ReadonlyMap<string, string>>(new Map());
let isAsked = false;

const MAX_NAMES = 1_000;

const loadNames = async (): Promise<void> => {
  let start: string | undefined;
  do {
    const query = new URLSearchParams({ size: '100', ...(start === undefined ? {} : { start }) }).toString();
    const page = await call<ApplicationPage>(`/applications?${query}`);
    if (!page.ok) return;
    names.value = new Map([...names.value, ...page.value.data.map(({ id, name }) => [id, name] as const)]);
    start = page.value.pagination.next;
  } while (start !== undefined && names.value.size < MAX_NAMES);
};

const SHORT = 8;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-/;

export const shortId = (id: string): string => (UUID.test(id) ? `${id.slice(0, SHORT)}…` : id);

/** A name, or the beginning of the id. */
export const nameOf = (type: string, id: string): string => {
  if (!isAsked && holds('application:read')) {
    isAsked = true;
    void loadNames();
  }
  const name = names.value.get(id);
  if (type === 'user' && id === '00000000-0000-0000-0000-000000000000') return 'operator';
  return name ?? shortId(id);
};

export const forgetNames = (): void => {
  isAsked = false;
  names.value = new Map();
};

effect(() => {
  if (session.value.status === 'signed_out') forgetNames();
});
