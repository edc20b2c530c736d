import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { call, holds, type Result, type Write } from './api.js';
import { actorOf } from './names.js';
import { Form, Table, Time } from './parts.js';
import { valueText } from './words.js';
import type { Log, LogPage } from './wire.js';

/** What a form edits, flat: an absent field is the same as an empty one. */
export type Fields = Readonly<Record<string, string>>;

/** What can be edited, and how its fields are sent. */
interface Editable<T> {
  readonly path: string;
  /** Filters of the log that tell who changed it. */
  readonly log: string;
  readonly labelOf: (name: string) => string;
  readonly fieldsOf: (value: T) => Fields;
  readonly bodyOf: (fields: Fields) => unknown;
}

interface Conflict {
  readonly before: Fields;
  readonly theirs: Fields;
  readonly yours: Fields;
  readonly by: Log | undefined;
}

const namesIn = (...versions: readonly Fields[]): readonly string[] => [
  ...new Set(versions.flatMap((fields) => Object.keys(fields))),
];

const isSame = (one: Fields, other: Fields): boolean =>
  namesIn(one, other).every((name) => (one[name] ?? '') === (other[name] ?? ''));

/** Only what I have changed is mine. */
const merged = ({ before, theirs, yours }: Omit<Conflict, 'by'>): Fields =>
  Object.fromEntries(
    namesIn(theirs, yours).map((name) => {
      const isMine = (yours[name] ?? '') !== (before[name] ?? '');
      return [name, (isMine ? yours[name] : theirs[name]) ?? ''];
    }),
  );

const lastChange = async (query: string): Promise<Log | undefined> => {
  const page = holds('log:read') ? await call<LogPage>(`/logs?${query}&size=1`) : undefined;
  return page?.ok === true ? page.value.data[0] : undefined;
};

const NOT_SAVED =
  'Nothing was saved: somebody else has changed this meanwhile. Look at what will be saved, and save again.';

const NOT_SHOWN = 'Nothing was saved: this was changed a moment ago, which cannot be seen yet. Save again.';

interface ConflictProps {
  readonly conflict: Conflict;
  /** As the form is now. */
  readonly draft: Fields;
  readonly labelOf: (name: string) => string;
  readonly takeTheirs: () => void;
}

/** What both sides have changed. */
const ConflictTable = ({ conflict, draft, labelOf, takeTheirs }: ConflictProps) => {
  const { before, theirs, yours, by } = conflict;
  const sides = { Before: before, Theirs: theirs, Yours: yours, 'Will be saved': draft };
  const names = namesIn(...Object.values(sides)).filter(
    (name) => new Set(Object.values(sides).map((fields) => fields[name] ?? '')).size > 1,
  );
  const rows = names.map((name) => {
    const texts = Object.values(sides).map((fields) => valueText(fields[name], name));
    const cells = texts.map((text) => (text === texts[0] ? text : <ins>{text}</ins>));
    return [labelOf(name), ...cells];
  });
  return (
    <section class="card" aria-label="Changed meanwhile">
      <p>
        Changed meanwhile by {by ? actorOf(by) : 'somebody else'}
        {by && [', ', <Time key="when" at={by.created_at} />]}. Fields that you have changed keep your text,
        all others have theirs now.
      </p>
      <Table titles={['Field', ...Object.keys(sides)]} rows={rows} />
      <button onClick={takeTheirs}>Take theirs</button>
    </section>
  );
};

interface NameProps {
  readonly fields: Fields;
  readonly isFirst?: boolean;
  readonly onChange: (fields: Fields) => void;
}

export const NameField = ({ fields, isFirst, onChange }: NameProps) => (
  <label>
    Name
    <input
      value={fields['name']}
      required
      autofocus={isFirst}
      maxLength={200}
      dir="auto"
      onInput={({ currentTarget: { value } }) => onChange({ ...fields, name: value })}
    />
  </label>
);

interface EditProps<T> {
  readonly value: T;
  readonly etag: string;
  readonly editable: Editable<T>;
  readonly onDone: (saved: T) => void;
  /** What edits the fields; `base`: as they were loaded or saved. */
  readonly children: (draft: Fields, change: (to: Fields) => void, base: Fields) => ComponentChildren;
}

/** Edits something that others may change at the same time. */
export const EditForm = <T,>({ value, etag, editable, onDone, children }: EditProps<T>) => {
  const { path, log, labelOf, fieldsOf, bodyOf } = editable;
  const [base, setBase] = useState({ fields: fieldsOf(value), etag });
  const [draft, setDraft] = useState(base.fields);
  const [conflict, setConflict] = useState<Conflict>();
  const settle = (fields: Fields, newEtag: string): void => {
    setBase({ fields, etag: newEtag });
    setDraft(fields);
    setConflict(undefined);
  };
  const put = async (write: Write, condition: string): Promise<Result<T> | string> => {
    const headers = { 'If-Match': condition };
    const saved = await write<T>(path, { method: 'PUT', body: bodyOf(draft), headers });
    if (saved.ok) settle(fieldsOf(saved.value), saved.etag);
    if (saved.ok || saved.problem.code !== 'precondition_failed') return saved;
    const current = await call<T>(path);
    if (!current.ok) return current;
    const [theirs, currentEtag] = [fieldsOf(current.value), current.etag];
    if (currentEtag === condition) return NOT_SHOWN;
    // Something else was changed, such as its keys.
    if (isSame(base.fields, theirs)) return put(write, currentEtag);
    const versions = { before: base.fields, theirs, yours: draft };
    settle(theirs, currentEtag);
    if (isSame(merged(versions), theirs)) return current;
    setDraft(merged(versions));
    setConflict({ ...versions, by: await lastChange(log) });
    return NOT_SAVED;
  };
  const isChanged = !isSame(draft, base.fields);
  const takeTheirs = (): void => settle(base.fields, base.etag);
  return (
    <>
      {conflict && <ConflictTable {...{ conflict, draft, labelOf, takeTheirs }} />}
      <Form
        onSend={(_, write) => put(write, base.etag)}
        onDone={onDone}
        button="Save"
        kind="primary"
        isReady={isChanged}
        isChanged={isChanged}
      >
        {children(draft, setDraft, base.fields)}
      </Form>
    </>
  );
};
