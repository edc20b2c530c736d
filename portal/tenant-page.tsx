import { useState } from 'preact/hooks';
import { call, endSession, holds, textOf } from './api.js';
import { useLoaded } from './loaded.js';
import { Alert, Dialog, lacking, NeedsPermission, Time, useOneAtATime } from './parts.js';
import { SETTINGS } from './tenant-settings.js';
import type { Problem, Tenant } from './wire.js';

interface Draft {
  readonly name: string;
  readonly settings: Readonly<Record<string, string>>;
}

const draftOf = ({ name, settings }: Tenant): Draft => ({ name, settings });

interface ConflictProps {
  readonly theirs: Tenant;
  readonly yours: Draft;
  readonly onKeep: (mine: boolean) => void;
}

/** Somebody else has changed the Tenant since this page was loaded. */
const Conflict = ({ theirs, yours, onKeep }: ConflictProps) => {
  const fields = [
    ['Name', theirs.name, yours.name] as const,
    ...SETTINGS.map(([name, label]) => [label, theirs.settings[name], yours.settings[name]] as const),
  ];
  return (
    <section class="card" role="alert">
      <h2>Somebody else has changed this Tenant meanwhile</h2>
      <table class="changes">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Theirs</th>
            <th scope="col">Yours</th>
          </tr>
        </thead>
        <tbody>
          {fields.map(([label, their, your]) => (
            <tr key={label} class={their === your ? '' : 'differs'}>
              <th scope="row">{label}</th>
              <td>{their}</td>
              <td>
                {your}
                {their === your ? '' : ' (differs)'}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="buttons">
        <button type="button" onClick={() => onKeep(false)}>
          Take theirs
        </button>
        <button type="button" class="primary" onClick={() => onKeep(true)}>
          Save yours over it
        </button>
      </div>
    </section>
  );
};

const DeleteDialog = ({ tenant, etag, onClose }: { tenant: Tenant; etag: string; onClose: () => void }) => {
  const [typed, setTyped] = useState('');
  const [failure, setFailure] = useState<string>();
  const remove = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const done = await call('/tenants/self', { method: 'DELETE', headers: { 'If-Match': etag } });
    if (done.ok) endSession('The Tenant was deleted, and with it the key that you had signed in with.');
    else setFailure(textOf(done.problem));
  };
  return (
    <Dialog title="Delete the Tenant" onClose={onClose}>
      <form onSubmit={(event) => void remove(event)}>
        <p>
          All its keys stop working at once, this session too. Its history is kept. This cannot be undone. To
          confirm, type its name:{' '}
          <strong class="name" dir="auto">
            {tenant.name}
          </strong>
        </p>
        {failure === undefined ? null : <Alert text={failure} />}
        <label>
          Name of the Tenant
          <input
            value={typed}
            autocomplete="off"
            onInput={({ currentTarget }) => setTyped(currentTarget.value)}
          />
        </label>
        <button type="submit" class="danger" disabled={typed !== tenant.name}>
          Delete
        </button>
      </form>
    </Dialog>
  );
};

interface FormProps {
  readonly tenant: Tenant;
  readonly etag: string;
  readonly onChanged: () => void;
}

interface Note {
  readonly text: string;
  readonly isGood: boolean;
}

interface FieldsProps {
  readonly draft: Draft;
  readonly onDraft: (draft: Draft) => void;
  readonly onSave: () => void;
  readonly note: Note | undefined;
}

const Fields = ({ draft, onDraft, onSave, note }: FieldsProps) => {
  const mayUpdate = holds('tenant:update');
  return (
    <form
      class="card"
      onSubmit={(event) => {
        event.preventDefault();
        onSave();
      }}
    >
      <label>
        Name
        <input
          value={draft.name}
          maxLength={200}
          required
          disabled={!mayUpdate}
          dir="auto"
          onInput={({ currentTarget }) => onDraft({ ...draft, name: currentTarget.value })}
        />
      </label>
      <fieldset disabled={!mayUpdate}>
        <legend>Settings</legend>
        {SETTINGS.map(([name, label]) => (
          <label key={name} class="check">
            <input
              type="checkbox"
              checked={draft.settings[name] === 'true'}
              onChange={({ currentTarget: { checked } }) =>
                onDraft({ ...draft, settings: { ...draft.settings, [name]: String(checked) } })
              }
            />
            {label}
          </label>
        ))}
      </fieldset>
      {note?.isGood === true ? <p role="status">{note.text}</p> : null}
      {note?.isGood === false ? <Alert text={note.text} /> : null}
      {mayUpdate ? (
        <button type="submit" class="primary">
          Save
        </button>
      ) : (
        <p class="quiet">
          To change it, a key needs the permission <code>tenant:update</code>.
        </p>
      )}
    </form>
  );
};

const TenantForm = ({ tenant, etag, onChanged }: FormProps) => {
  const [draft, setDraft] = useState(draftOf(tenant));
  const [conflict, setConflict] = useState<{ readonly theirs: Tenant; readonly etag: string }>();
  const [note, setNote] = useState<Note>();
  const onRefused = async (problem: Problem): Promise<void> => {
    if (problem.code !== 'precondition_failed') return setNote({ text: textOf(problem), isGood: false });
    const current = await call<Tenant>('/tenants/self');
    if (current.ok) return setConflict({ theirs: current.value, etag: current.etag ?? '' });
    const text = `Not saved: somebody else has changed this Tenant meanwhile, and their version could not be loaded. ${textOf(current.problem)}`;
    setNote({ text, isGood: false });
  };
  const save = useOneAtATime(async (condition: string) => {
    setNote(undefined);
    const headers = { 'If-Match': condition };
    const saved = await call<Tenant>('/tenants/self', { method: 'PUT', body: draft, headers });
    setConflict(undefined);
    if (!saved.ok) return onRefused(saved.problem);
    setNote({ text: 'Saved.', isGood: true });
    onChanged();
  });
  const resolve = (mine: boolean): void => {
    if (conflict === undefined) return;
    if (mine) return void save(conflict.etag);
    setDraft(draftOf(conflict.theirs));
    setConflict(undefined);
    onChanged();
  };
  return (
    <>
      {conflict === undefined ? null : <Conflict theirs={conflict.theirs} yours={draft} onKeep={resolve} />}
      <Fields draft={draft} onDraft={setDraft} onSave={() => void save(etag)} note={note} />
    </>
  );
};

const TenantView = () => {
  const [loaded, reload] = useLoaded<Tenant>('/tenants/self');
  const [isDeleting, setDeleting] = useState(false);
  if (loaded === undefined)
    return (
      <main class="page">
        <p class="quiet">Loading …</p>
      </main>
    );
  if (!loaded.ok)
    return (
      <main class="page">
        <Alert text={textOf(loaded.problem)} />
      </main>
    );
  const { value: tenant, etag = '' } = loaded;
  return (
    <main class="page">
      <h1>Tenant</h1>
      <TenantForm tenant={tenant} etag={etag} onChanged={reload} />
      <section class="card">
        <dl class="facts">
          <div>
            <dt>Id</dt>
            <dd>{tenant.id}</dd>
          </div>
          <div>
            <dt>Created</dt>
            <dd>
              <Time at={tenant.created_at} />
            </dd>
          </div>
          {tenant.modified_at === undefined ? null : (
            <div>
              <dt>Changed</dt>
              <dd>
                <Time at={tenant.modified_at} />
              </dd>
            </div>
          )}
        </dl>
        {holds('tenant:delete') ? (
          <button type="button" class="danger" onClick={() => setDeleting(true)}>
            Delete the Tenant …
          </button>
        ) : null}
      </section>
      {isDeleting ? <DeleteDialog tenant={tenant} etag={etag} onClose={() => setDeleting(false)} /> : null}
    </main>
  );
};

export const TenantPage = () =>
  lacking('tenant:read') === undefined ? (
    <TenantView />
  ) : (
    <NeedsPermission permission="tenant:read" to="see the Tenant" />
  );
