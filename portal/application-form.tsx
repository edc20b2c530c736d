import { useState } from 'preact/hooks';
import { isOwn, session, type Failed, type Write } from './api.js';
import { ConflictTable, useEditing, type Fields } from './editing.js';
import { useLoaded } from './loaded.js';
import { forgetNames } from './names.js';
import { Agreement, Form, Waiting } from './parts.js';
import type { Application, ApplicationType, Permission } from './wire.js';

const TYPES: readonly ApplicationType[] = ['public', 'private', 'management'];

/** What the Application of this session holds: an Application that holds all that its type may can grant anything. */
const mayGrant = (permission: string, all: readonly Permission[]): boolean => {
  const now = session.value;
  if (now.status !== 'signed_in') return false;
  const { type, permissions } = now.application;
  const possible = all.filter(({ application_types }) => application_types.includes(type));
  return permissions.includes(permission) || possible.every((one) => permissions.includes(one.type));
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

interface InputsProps {
  readonly type: ApplicationType;
  readonly fields: Fields;
  readonly onChange: (name: string, text: string) => void;
}

const Permissions = ({ type, fields, onChange }: InputsProps) => {
  const [loaded] = useLoaded<readonly Permission[]>('/permissions');
  if (loaded?.ok !== true) return <Waiting loaded={loaded} />;
  const possible = loaded.value.filter(({ application_types }) => application_types.includes(type));
  return (
    <fieldset class="permissions">
      <legend>Permissions of a {type} Application</legend>
      {possible.map(({ type: permission, description }) => {
        const isHeld = fields[permission] === 'held';
        const isPossible = isHeld || mayGrant(permission, loaded.value);
        return (
          <label key={permission} class="check">
            <input
              type="checkbox"
              checked={isHeld}
              disabled={!isPossible}
              onChange={({ currentTarget: { checked } }) => onChange(permission, checked ? 'held' : '')}
            />
            <span>
              <code>{permission}</code> {description}
              {isPossible ? '' : ' (your key does not hold it, so it cannot grant it)'}
            </span>
          </label>
        );
      })}
    </fieldset>
  );
};

const Name = ({ fields, onChange }: Omit<InputsProps, 'type'>) => (
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

export const NewApplicationForm = ({ onDone }: { readonly onDone: (made: Application) => void }) => {
  const [type, setType] = useState<ApplicationType>('private');
  const [fields, setFields] = useState<Fields>({ name: '' });
  const change = (name: string, text: string): void => setFields({ ...fields, [name]: text });
  const create = async (_: FormData, write: Write): Promise<Failed | undefined> => {
    const body = { ...bodyOf(fields), type };
    const made = await write<Application>('/applications', { method: 'POST', body });
    if (!made.ok) return made;
    onDone(made.value);
    return undefined;
  };
  return (
    <Form onSend={create} button="Create" kind="primary">
      <Name fields={fields} onChange={change} />
      <label>
        Type
        <select
          value={type}
          onChange={({ currentTarget }) => {
            setType(currentTarget.value as ApplicationType);
            setFields({ name: fields['name'] ?? '' });
          }}
        >
          {TYPES.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
      <Permissions type={type} fields={fields} onChange={change} />
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
  const { draft, base, isChanged, change, save, conflict, takeTheirs } = useEditing(application, etag, {
    path: `/applications/${id}`,
    log: `entity_type=application&entity_id=${id}`,
    fieldsOf,
    bodyOf,
    onSaved: () => {
      forgetNames();
      onDone();
    },
  });
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
        <Permissions type={type} fields={draft} onChange={change} />
        {isOwn(application) && lost.length > 0 ? (
          <Agreement text={`a key of this Application, which loses ${lost.join(', ')}`} />
        ) : null}
      </Form>
    </>
  );
};
