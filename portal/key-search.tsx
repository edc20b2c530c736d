import { useState } from 'preact/hooks';
import { call, holds, openStream, textOf } from './api.js';
import { addressOf } from './place.js';
import type { Application, ApplicationPage, LedgerEvent } from './wire.js';

const KEY = /^key_[0-9A-Za-z]{55}$/;
const DIGEST_LENGTH = 8;

interface Found {
  readonly applicationId: string;
  readonly text: string;
}

/** The key itself never leaves the browser: only the beginning of its digest is compared, as events show it. */
const digestOf = async (key: string): Promise<string> => {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(key));
  return [...new Uint8Array(bytes)]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
    .slice(0, DIGEST_LENGTH);
};

interface KeyAdded {
  readonly applicationId: string;
  readonly keyId: string;
  readonly digest: string;
}

/** Also finds keys that are revoked or expired, since it looks at what happened. */
const findByKey = async (key: string): Promise<readonly Found[]> => {
  const digest = await digestOf(key);
  const response = await openStream('/events?type=KeyAdded', new AbortController().signal);
  const lines = (await response?.text())?.split('\n') ?? [];
  return lines
    .filter((line) => line.includes(`"${digest}"`))
    .map((line) => (JSON.parse(line) as LedgerEvent).data as KeyAdded)
    .filter((data) => data.digest === digest)
    .map(({ applicationId, keyId }) => ({ applicationId, text: `key ${keyId}` }));
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
    setFound(
      holds('log:read')
        ? await findByKey(text)
        : 'To find a key by pasting it, a key needs the permission log:read.',
    );
  };
  return (
    <form class="card" onSubmit={(event) => void search(event)} autocomplete="off">
      <label>
        Find a key by its id, its name, or by pasting it
        <input name="key" required spellcheck={false} autocomplete="off" />
      </label>
      <p class="quiet">
        A pasted key does not leave the browser: only the beginning of its digest is compared.
      </p>
      <button type="submit">Find</button>
      {typeof found === 'string' ? <p role="status">{found}</p> : null}
      {Array.isArray(found) && found.length === 0 ? <p role="status">No such key was found.</p> : null}
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
