import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { call, textOf } from './api.js';
import { NO_SUBJECT, queryOf } from './filters.js';
import { FoundKeyNote, findKey, hasKey } from './found-key.js';
import { applicationNames, askForApplications, nameOf, UUID } from './names.js';
import { counted } from './parts.js';
import { go, isLikeKey, withParameters } from './place.js';
import type { LogPage } from './wire.js';

/** What an id may be of: the filter that finds it, and its name. */
const MEANINGS = [
  ['entity_id', 'an entity'],
  ['trace_id', 'a request'],
  ['actor_id', 'an actor'],
] as const;

const findRows = async ([filter, what]: (typeof MEANINGS)[number], id: string) => {
  const page = await call<LogPage>(`/logs?${queryOf({ [filter]: id }, { size: '1' })}`);
  if (!page.ok) return textOf(page.problem);
  const type = filter === 'entity_id' ? page.value.data[0]?.entity_type : undefined;
  const count = page.value.pagination.total_items ?? 0;
  const address = withParameters({ ...NO_SUBJECT, [filter]: id });
  return { what: type === undefined ? what : `the ${type}`, name: nameOf(type ?? '', id), count, address };
};

/** Takes what was pasted for whatever it is, and says so; or what it was tried as. */
const search = async (text: string): Promise<ComponentChildren> => {
  if (isLikeKey(text)) {
    const found = await findKey(text);
    return typeof found === 'string' ? found : <FoundKeyNote key={found.key_id} found={found} />;
  }
  await askForApplications();
  const like = applicationNames.value.filter(([, name]) => name.toLowerCase().includes(text.toLowerCase()));
  const named = like.find(([, name]) => name.length === text.length)?.[0];
  const id = named ?? (UUID.test(text) ? text.toLowerCase() : text);
  const tried = MEANINGS.slice(0, UUID.test(id) ? 3 : 2);
  const found = await Promise.all(tried.map((meaning) => findRows(meaning, id)));
  const failure = found.find((one) => typeof one === 'string');
  if (failure !== undefined) return failure;
  const [first, ...others] = found.filter((one) => typeof one !== 'string').filter(({ count }) => count > 0);
  if (first !== undefined) {
    go(first.address);
    const also = others.map(({ what, count, address }) => (
      <a key={what} href={address}>
        It is also {what}: {counted(count, 'row')}.
      </a>
    ));
    return [
      `This is ${first.what.replace(/^an? /, 'the ')} ${first.name}: ${counted(first.count, 'row')}. `,
      also,
    ];
  }
  // An event is asked for last: one that there is not is an error, and errors are for what is wrong.
  if (UUID.test(id) && (await call(`/events/${id}`)).ok) {
    go(withParameters({ event: id }));
    return 'This is an event; it is open.';
  }
  const [only] = like;
  if (named === undefined && only !== undefined && like.length === 1) return search(only[1]);
  if (named === undefined && like.length > 1)
    return [
      `${counted(like.length, 'Application')} have ${text} in their names: `,
      like.map(([application, name]) => (
        <a key={application} href={withParameters({ ...NO_SUBJECT, entity_id: application })}>
          {name}{' '}
        </a>
      )),
    ];
  const last = UUID.test(id) ? 'an event' : 'the name of an Application';
  return `Nothing is called ${text}: it was tried as ${tried.map(([, what]) => what).join(', ')} and ${last}.`;
};

/** One field for whatever somebody has at hand. A key that is pasted is hashed here, and then gone. */
export const SearchField = () => {
  const [note, setNote] = useState<{ readonly text: ComponentChildren; readonly at: string }>();
  const [isBusy, setBusy] = useState(false);
  const here = () => withParameters({ event: undefined });
  const find = async (input: HTMLInputElement): Promise<void> => {
    const text = input.value.trim();
    if (text === '' || isBusy) return;
    const before = location.href;
    input.value = '';
    setBusy(true);
    setNote({ text: await search(text), at: here() });
    // What found nothing can be corrected.
    if (location.href === before && input.value === '' && !isLikeKey(text)) input.value = text;
    setBusy(false);
  };
  return (
    <>
      <label class="search">
        <span class="wide-only">Find</span>
        <input
          id="search"
          aria-label="Find"
          type="search"
          aria-busy={isBusy}
          spellcheck={false}
          autocomplete="off"
          placeholder="Paste an id, a request’s trace, a key …"
          onFocus={({ currentTarget }) => currentTarget.select()}
          onChange={({ currentTarget }) => void find(currentTarget)}
          onInput={({ currentTarget }) => hasKey(currentTarget.value) && void find(currentTarget)}
        />
      </label>
      <div class="note" role="status" dir="auto">
        {isBusy ? 'Looking …' : note?.at === here() && note.text}
      </div>
    </>
  );
};
