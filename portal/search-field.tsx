import { useState } from 'preact/hooks';
import { call, textOf } from './api.js';
import { FoundKeyNote, findKey, hasKey, type FoundKey } from './found-key.js';
import { NO_SUBJECT, queryOf } from './filters.js';
import { applicationNames, askForApplications, nameOf } from './names.js';
import { counted } from './parts.js';
import { go, isLikeKey, withParameters } from './place.js';
import type { LogPage } from './wire.js';

/** What an id may be of: the filter that finds it, and its name. */
const MEANINGS = [
  ['entity_id', 'an entity'],
  ['trace_id', 'a request'],
  ['actor_id', 'an actor'],
] as const;
type Meaning = (typeof MEANINGS)[number];

interface Hit {
  readonly meaning: Meaning;
  readonly count: number;
  readonly type: string | undefined;
}

/** What came of a search, in words, with what else the text is. */
type Note =
  | { readonly kind: 'key'; readonly found: FoundKey }
  | { readonly kind: 'text'; readonly text: string; readonly also?: readonly Hit[]; readonly id?: string };

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const hitOf = async (meaning: Meaning, id: string): Promise<Hit | string> => {
  const page = await call<LogPage>(`/logs?${queryOf({ [meaning[0]]: id }, { size: '1' })}`);
  if (!page.ok) return textOf(page.problem);
  return { meaning, count: page.value.pagination.total_items ?? 0, type: page.value.data[0]?.entity_type };
};

const chosen = ({ meaning: [name] }: Hit, id: string): string =>
  withParameters({ ...NO_SUBJECT, [name]: id });

const showHits = (id: string, [first, ...also]: readonly Hit[]): Note | undefined => {
  if (first === undefined) return undefined;
  go(chosen(first, id));
  const named = first.meaning[0] === 'trace_id' ? id : nameOf(first.type ?? '', id);
  const what =
    first.meaning[0] === 'entity_id' && first.type !== undefined ? `the ${first.type}` : first.meaning[1];
  return { kind: 'text', text: `This is ${what} ${named}: ${counted(first.count, 'row')}.`, also, id };
};

/** An event is asked for last: one that there is not is an error, and errors are for what is wrong. */
const showEvent = async (id: string): Promise<Note | undefined> => {
  if (!UUID.test(id)) return undefined;
  const found = await call(`/events/${id.toLowerCase()}`);
  if (!found.ok) return undefined;
  go(withParameters({ event: id.toLowerCase() }));
  return { kind: 'text', text: 'This is an event; it is open.' };
};

/** Takes what was pasted for whatever it is, and says so; or what it was tried as. */
const search = async (text: string): Promise<Note | undefined> => {
  if (text === '') return undefined;
  if (isLikeKey(text)) {
    const found = await findKey(text);
    return typeof found === 'string' ? { kind: 'text', text: found } : { kind: 'key', found };
  }
  await askForApplications();
  const named = applicationNames.value.find(([, name]) => name.toLowerCase() === text.toLowerCase())?.[0];
  const id = named ?? (UUID.test(text) ? text.toLowerCase() : text);
  const tried = MEANINGS.slice(0, UUID.test(id) ? 3 : 2);
  const hits = await Promise.all(tried.map((meaning) => hitOf(meaning, id)));
  const failure = hits.find((hit) => typeof hit === 'string');
  if (failure !== undefined) return { kind: 'text', text: failure };
  const found = hits.filter((hit) => typeof hit !== 'string').filter(({ count }) => count > 0);
  const names = [
    ...tried.map(([, name]) => name),
    ...(UUID.test(id) ? ['an event'] : ['an Application by name']),
  ];
  const none = `Nothing is called ${text}: it was tried as ${names.join(', ')}.`;
  return showHits(id, found) ?? (await showEvent(id)) ?? { kind: 'text', text: none };
};

const NoteText = ({ note }: { readonly note: Note }) =>
  note.kind === 'key' ? (
    <FoundKeyNote key={note.found.key_id} found={note.found} />
  ) : (
    <>
      <span dir="auto">{note.text}</span>
      {(note.also ?? []).map((hit) => (
        <a key={hit.meaning[0]} href={chosen(hit, note.id ?? '')}>
          It is also {hit.meaning[1]}: {counted(hit.count, 'row')}
        </a>
      ))}
    </>
  );

/** One field for whatever somebody has at hand. A key that is pasted is hashed here, and then gone. */
export const SearchField = () => {
  const [note, setNote] = useState<{ readonly note: Note; readonly at: string }>();
  const [isBusy, setBusy] = useState(false);
  const here = withParameters({ event: undefined });
  const find = async (input: HTMLInputElement): Promise<void> => {
    const text = input.value.trim();
    if (text === '' || isBusy) return;
    input.value = '';
    setBusy(true);
    const found = await search(text);
    setNote(found && { note: found, at: withParameters({ event: undefined }) });
    setBusy(false);
  };
  return (
    <>
      <label class="search">
        <span>Find</span>
        <input
          id="search"
          type="search"
          aria-busy={isBusy}
          spellcheck={false}
          autocomplete="off"
          placeholder="Paste an id, a request’s trace, a key …"
          onChange={({ currentTarget }) => void find(currentTarget)}
          onInput={({ currentTarget }) => hasKey(currentTarget.value) && void find(currentTarget)}
        />
      </label>
      <div class="note" role="status">
        {isBusy ? 'Looking …' : null}
        {!isBusy && note?.at === here ? (
          <>
            <NoteText note={note.note} />
            <button
              type="button"
              class="small"
              aria-label="Close this note"
              onClick={() => setNote(undefined)}
            >
              ×
            </button>
          </>
        ) : null}
      </div>
    </>
  );
};
