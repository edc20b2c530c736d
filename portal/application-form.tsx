import { useState } from 'preact/hooks';
import { holds, isOwn, textOf, type Result, type Write } from './api.js';
import { EditForm, NameField, type Fields } from './editing.js';
import { Expiry, expiryIn, textIn } from './moment-input.js';
import { learnApplications } from './names.js';
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
  const create = async (form: FormData, write: Write): Promise<Result<Made>> => {
    const expires_at = expiryIn(form);
    const name = textIn(form, 'key_name');
    const body = { ...bodyOf(fields), type, expires_at, create_key: name === undefined };
    const made = await write<Application>('/applications', { method: 'POST', body });
    if (!made.ok || name === undefined) return made;
    const { id } = made.value;
    const added = await write<Key>(`/applications/${id}/keys`, {
      method: 'POST',
      body: { name, expires_at },
    });
    return {
      ...made,
      value: added.ok ? { id, key: added.value.key } : { id, failure: textOf(added.problem) },
    };
  };
  return (
    <Form onSend={create} onDone={onDone} button="Create" kind="primary">
      <NameField isFirst fields={fields} onChange={setFields} />
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
      <fieldset class="tiles">
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
  const editable = {
    path: `/applications/${id}`,
    log: `entity_type=application&entity_id=${id}`,
    labelOf: (name: string) => (name === 'name' ? 'Name' : name),
    fieldsOf,
    bodyOf,
  };
  const done = (saved: Application): void => {
    learnApplications([saved]);
    onDone();
  };
  const lostIn = (draft: Fields, base: Fields): string =>
    Object.keys(base)
      .filter((name) => base[name] === 'held' && draft[name] !== 'held')
      .join(', ');
  return (
    <EditForm value={application} etag={etag} editable={editable} onDone={done}>
      {(draft, change, base) => (
        <>
          <NameField isFirst fields={draft} onChange={change} />
          <PermissionMatrix type={type} fields={draft} onChange={change} />
          {isOwn(application) && lostIn(draft, base) !== '' ? (
            <Agreement text={`a key of this Application, which loses ${lostIn(draft, base)}`} />
          ) : null}
        </>
      )}
    </EditForm>
  );
};
