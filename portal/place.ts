import { signal } from '@preact/signals';
import { leave } from './leaving.js';
import { remembered } from './remembered.js';
import { timeStyles } from './time.js';

/** Where the reader is: the page and everything about it is in the address, so that it can be shared. */
interface Place {
  readonly page: string;
  readonly parameters: URLSearchParams;
  /** Names the entry of the history, so that Back finds what was there. */
  readonly entry: string;
}

/** What has the form of a key, or of most of one: it never enters an address, nor a query. */
const KEY = /(?:key|svc)_[0-9A-Za-z]{20}/;
export const isLikeKey = (text: string): boolean => KEY.test(text);

const addressWith = (page: string, parameters: URLSearchParams): string => {
  const kept = new URLSearchParams([...parameters].filter(([, value]) => !isLikeKey(value)));
  const query = kept.toString();
  return `/portal/${isLikeKey(page) ? '' : page}${query === '' ? '' : `?${query}`}`;
};

const newEntry = (): string => `${Date.now()} ${Math.random()}`;

const parsed = (): Place => {
  const page = location.pathname.replace(/^\/portal\/?/, '').replace(/\/$/, '');
  const parameters = new URLSearchParams(location.search);
  const state = history.state as { readonly entry?: string } | null;
  if (!isLikeKey(location.href)) {
    if (state?.entry !== undefined) return { page, parameters, entry: state.entry };
    history.replaceState({ entry: newEntry() }, '');
  } else history.replaceState({ entry: newEntry() }, '', addressWith(page, parameters));
  return parsed();
};

export const place = signal(parsed());

// Each page comes back as it was by itself, once it is there.
history.scrollRestoration = 'manual';
addEventListener('popstate', () => (place.value = parsed()));

export const parameter = (name: string): string | undefined => place.value.parameters.get(name) ?? undefined;

export const addressOf = (page: string, parameters: Readonly<Record<string, string>> = {}): string =>
  addressWith(page, new URLSearchParams(parameters));

export const go = (address: string, { replace = false } = {}): void => {
  if (replace) history.replaceState(history.state, '', address);
  else history.pushState({ entry: newEntry() }, '', address);
  const before = place.value.page;
  place.value = parsed();
  if (place.value.page !== before) scrollTo(0, 0);
};

/** The same page with other parameters. Undefined removes one. */
export const withParameters = (changes: Readonly<Record<string, string | undefined>>): string => {
  const parameters = new URLSearchParams(place.value.parameters);
  for (const [name, value] of Object.entries(changes))
    if (value === undefined) parameters.delete(name);
    else parameters.set(name, value);
  return addressWith(place.value.page, parameters);
};

/** Lets links change the page without loading it again; with a modifier key they are links like any other. */
export const follow = (event: MouseEvent): void => {
  const link = (event.target as Element | null)?.closest('a');
  if (link === null || link === undefined || link.origin !== location.origin) return;
  if (!link.pathname.startsWith('/portal') || link.pathname.startsWith('/portal/download')) return;
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey)
    return;
  event.preventDefault();
  // The same place again is no new entry.
  const address = `${link.pathname}${link.search}`;
  leave(() => go(address, { replace: address === `${location.pathname}${location.search}` }));
};

/** How times are written on every page, and in which zone they are typed. */
export const timeStyle = remembered('time', timeStyles);
