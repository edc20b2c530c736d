import { signal } from '@preact/signals';
import { remembered } from './remembered.js';
import { timeStyles } from './time.js';

/** Where the reader is: the page and everything about it is in the address, so that it can be shared. */
const parsed = () => ({
  page: location.pathname.replace(/^\/portal\/?/, '').replace(/\/$/, ''),
  parameters: new URLSearchParams(location.search),
});

export const place = signal(parsed());

addEventListener('popstate', () => (place.value = parsed()));

export const parameter = (name: string): string | undefined => place.value.parameters.get(name) ?? undefined;

const addressWith = (page: string, parameters: URLSearchParams): string => {
  const query = parameters.toString();
  return `/portal/${page}${query === '' ? '' : `?${query}`}`;
};

export const addressOf = (page: string, parameters: Readonly<Record<string, string>> = {}): string =>
  addressWith(page, new URLSearchParams(parameters));

export const go = (address: string, { replace = false } = {}): void => {
  if (replace) history.replaceState(null, '', address);
  else history.pushState(null, '', address);
  place.value = parsed();
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
  go(`${link.pathname}${link.search}`);
};

/** How times are written on every page, and in which zone they are typed. */
export const timeStyle = remembered('time', timeStyles);
