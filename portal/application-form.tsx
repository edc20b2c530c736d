import { useState } from 'preact/hooks';
import { holds, isOwn, textOf, type Failed, type Write } from './api.js';
import { ConflictTable, useEditing, type Fields } from './editing.js';
import { Expiry, expiryIn, textIn } from './expiry.js';
import { forgetNames } from './names.js';
import { Agreement, Form } from './parts.js';
import { PermissionMatrix } from './permission-matrix.js';
import type { Application, ApplicationType, Key } from './wire.js';

const ABOUT: Readonly<Record<ApplicationType, string>> = {
  public:
    'For browsers and apps, where others can find the key: it may create and update tokens, and read none.',
  private:
    'For your own servers, which keep the key to themselves: it may also read, search, use and delete tokens.',
  management:
    'For people and programs that manage the Tenant: its Applications, its log and its reports; no tokens.',
};

/** A field for the name, and one for each permission. */
const fieldsOf = ({ name, permissions }: Pick<Application, 'name' | 'permissions'>): Fields => ({
  name,
  ...Object.fromEntries(permissions.map((permission) => [permission, 'held'])),
});

const bodyOf = ({ name = '', ...held }: Fields) => ({
  name,
  permissions: Object.keys(held).filter((permission) => held[permission] === 'held'),
});

interface NameProps {
  readonly fields: Fields;
  readonly onChange: (name: string, text: string) => void;
}

const Name = ({ fields, onChange }: NameProps) => (
  <label>
    Name
    <input
      value={fields['name']}
      required
      autofocus
      maxLength={200}
      dir="auto"
      onInput={({ currentTarget }) => onChange('name', currentTarget.value)}
    />
  </label>
);

export interface Made {
  readonly id: string;
  readonly key?: string | undefined;
  readonly failure?: string;
}

interface NewProps {
  /** Without a key it was lost on the way, or, with a reason, not made. */
  readonly onDone: (made: Made) => void;
}

export const NewApplicationForm = ({ onDone }: NewProps) => {
  const [type, setType] = useState<ApplicationType>('private');
  const [fields, setFields] = useState<Fields>({ name: '' });
  const create = async (form: FormData, write: Write): Promise<Failed | string | undefined> => {
    const { expires_at, refused } = expiryIn(form);
    if (refused !== undefined) return refused;
    const name = textIn(form, 'key_name');
    const body = { ...bodyOf(fields), type, expires_at, create_key: name === undefined };
    const made = await write<Application>('/applications', { method: 'POST', body });
    if (!made.ok) return made;
    const { id, key } = made.value;
    if (name === undefined) return void onDone({ id, key });
    const added = await write<Key>(`/applications/${id}/keys`, {
      method: 'POST',
      body: { name, expires_at },
    });
    onDone(added.ok ? { id, key: added.value.key } : { id, failure: textOf(added.problem) });
    return undefined;
  };
  return (
    <Form onSend={create} button="Create" kind="primary">
      <Name fields={fields} onChange={(name, text) => setFields({ ...fields, [name]: text })} />
      <label>
        Type
        <select
          value={type}
          aria-describedby="about-type"
          onChange={({ currentTarget }) => {
            setType(currentTarget.value as ApplicationType);
            setFields({ name: fields['name'] ?? '' });
          }}
        >
          {Object.keys(ABOUT).map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
      <p id="about-type" class="quiet">
        {ABOUT[type]} The type cannot be changed later.
      </p>
      <PermissionMatrix type={type} fields={fields} onChange={setFields} />
      <fieldset class="pair">
        <legend>First key</legend>
        {holds('application:update') ? (
          <label>
            Name of the key
            <input name="key_name" maxLength={200} dir="auto" placeholder="What it is for" />
          </label>
        ) : null}
        <Expiry />
      </fieldset>
    </Form>
  );
};

interface EditProps {
  readonly application: Application;
  readonly etag: string;
  readonly onDone: () => void;
}

export const EditApplicationForm = ({ application, etag, onDone }: EditProps) => {
  const { id, type } = application;
  const { draft, base, isChanged, change, changeAll, save, conflict, takeTheirs } = useEditing(
    application,
    etag,
    {
      path: `/applications/${id}`,
      log: `entity_type=application&entity_id=${id}`,
      fieldsOf,
      bodyOf,
      onSaved: () => {
        forgetNames();
        onDone();
      },
    },
  );
  const lost = Object.keys(base).filter((name) => base[name] === 'held' && draft[name] !== 'held');
  return (
    <>
      {conflict === undefined ? null : (
        <ConflictTable
          conflict={conflict}
          draft={draft}
          labelOf={(name) => (name === 'name' ? 'Name' : name)}
          onTakeTheirs={takeTheirs}
        />
      )}
      <Form onSend={save} button="Save" kind="primary" isReady={isChanged} isChanged={isChanged}>
        <Name fields={draft} onChange={change} />
        <PermissionMatrix type={type} fields={draft} onChange={changeAll} />
        {isOwn(application) && lost.length > 0 ? (
          <Agreement text={`a key of this Application, which loses ${lost.join(', ')}`} />
        ) : null}
      </Form>
    </>
  );
};
