import { useState } from 'preact/hooks';
import { call, textOf } from './api.js';
import { addressOf } from './place.js';
import type { Application, ApplicationPage } from './wire.js';

const KEY = /^key_[0-9A-Za-z]{55}$/;
const DIGEST_LENGTH = 8;

interface Found {
  readonly applicationId: string;
  readonly text: string;
}

/** The key itself never leaves the browser: only the beginning of its digest does. */
const digestOf = async (key: string): Promise<string> => {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(key));
  return [...new Uint8Array(bytes)]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
    .slice(0, DIGEST_LENGTH);
};

const findByKey = async (key: string): Promise<readonly Found[] | string> => {
  const digest = await digestOf(key);
  const page = await call<ApplicationPage>(`/applications?key_digest=${digest}`);
  if (!page.ok) return textOf(page.problem);
  return page.value.data.flatMap(({ id: applicationId, name: application, keys }) =>
    keys
      .filter((item) => item.digest === digest)
      .map(({ id, name }) => ({ applicationId, text: `${name ?? id} of ${application}` })),
  );
};

const keysLike = (applications: readonly Application[], text: string): readonly Found[] =>
  applications.flatMap(({ id: applicationId, name: application, keys }) =>
    keys
      .filter(({ id, name = '' }) => id.startsWith(text) || name.toLowerCase().includes(text.toLowerCase()))
      .map(({ id, name }) => ({ applicationId, text: `${name ?? id} of ${application}` })),
  );

const findByName = async (
  applications: readonly Application[],
  text: string,
): Promise<readonly Found[] | string> => {
  const here = keysLike(applications, text);
  if (here.length > 0) return here;
  let start: string | undefined;
  do {
    const query = new URLSearchParams({ size: '100', ...(start === undefined ? {} : { start }) }).toString();
    const page = await call<ApplicationPage>(`/applications?${query}`);
    if (!page.ok) return textOf(page.problem);
    const found = keysLike(page.value.data, text);
    if (found.length > 0) return found;
    start = page.value.pagination.next;
  } while (start !== undefined);
  return [];
};

/** Finds a key by its id, its name, or by pasting it. */
export const KeySearch = ({ applications }: { readonly applications: readonly Application[] }) => {
  const [found, setFound] = useState<readonly Found[] | string>();
  const search = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const value = new FormData(form).get('key');
    const text = typeof value === 'string' ? value.trim() : '';
    if (!KEY.test(text)) return setFound(await findByName(applications, text));
    form.reset();
    setFound(await findByKey(text));
  };
  return (
    <form class="card" onSubmit={(event) => void search(event)} autocomplete="off">
      <label>
        Find a key by its id, its name, or by pasting it
        <input name="key" required spellcheck={false} autocomplete="off" />
      </label>
      <p class="quiet">
        Only keys that work are found. A pasted key does not leave the browser: it is hashed here, and the
        first 8 characters of its digest are compared.
      </p>
      <button type="submit">Find</button>
      {typeof found === 'string' ? <p role="status">{found}</p> : null}
      {Array.isArray(found) && found.length === 0 ? <p role="status">No key that works was found.</p> : null}
      {Array.isArray(found) && found.length > 0 ? (
        <ul class="links" role="status">
          {(found as readonly Found[]).map(({ applicationId, text }) => (
            <li key={text}>
              <a href={addressOf('applications', [['id', applicationId]])}>{text}</a>
            </li>
          ))}
        </ul>
      ) : null}
    </form>
  );
};
