import { useState } from 'preact/hooks';
import { agreesToLose, call, holds, isOwn, session, textOf } from './api.js';
import { useLoaded } from './loaded.js';
import { shortId } from './names.js';
import { Alert, Dialog, Form, NewKey, Time, useOneAtATime } from './parts.js';
import { momentFrom } from './time.js';
import type { Application, Key, KeyDay } from './wire.js';

/** `getTenant 12, listEvents 2`. */
const countsText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');

/** What a key was used for and refused on each day. */
const Uses = ({ application, id }: { readonly application: Application; readonly id: string }) => {
  const [loaded] = useLoaded<readonly KeyDay[]>(`/applications/${application.id}/keys/${id}/uses`);
  if (loaded === undefined) return <p class="quiet">Loading …</p>;
  if (!loaded.ok) return <Alert text={textOf(loaded.problem)} />;
  if (loaded.value.length === 0) return <p class="quiet">Not used in the last 30 days.</p>;
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Day (UTC)</th>
          <th scope="col">Operations</th>
          <th scope="col">Refused</th>
        </tr>
      </thead>
      <tbody>
        {loaded.value.map(({ date, operations, refusals }) => (
          <tr key={date}>
            <th scope="row">{date}</th>
            <td>{countsText(operations)}</td>
            <td>{countsText(refusals)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
};

interface CreateProps {
  readonly application: Application;
  readonly onCreated: (key: string) => void;
}

const textIn = (form: FormData, name: string): string | undefined => {
  const value = form.get(name);
  return typeof value === 'string' && value !== '' ? value : undefined;
};

const CreateForm = ({ application, onCreated }: CreateProps) => {
  const create = async (form: FormData): Promise<string | undefined> => {
    const expires = textIn(form, 'expires_at');
    const expires_at = momentFrom(expires ?? '');
    // Left out, it would mean never.
    if (expires !== undefined && expires_at === undefined)
      return `“${expires}” is not a date and time with a year of four digits.`;
    const body = { name: textIn(form, 'name'), expires_at };
    const made = await call<Key>(`/applications/${application.id}/keys`, { method: 'POST', body });
    if (!made.ok) return textOf(made.problem);
    onCreated(made.value.key ?? '');
    return undefined;
  };
  return (
    <Form onSend={create} button="Create" kind="primary">
      <label>
        Name
        <input name="name" maxLength={200} dir="auto" placeholder="What it is for" />
      </label>
      <label>
        Expires, in UTC (empty: never)
        <input name="expires_at" type="datetime-local" />
      </label>
    </Form>
  );
};

const RegenerateForm = ({ application, onCreated }: CreateProps) => {
  const regenerate = async (form: FormData): Promise<string | undefined> => {
    if (isOwn(application) && !agreesToLose('one of the keys that end')) return undefined;
    const hours = Number(textIn(form, 'hours') ?? 0);
    const made = await call<Application>(`/applications/${application.id}/regenerate`, {
      method: 'POST',
      body: { grace_seconds: Math.round(hours * 3_600) },
    });
    if (!made.ok) return textOf(made.problem);
    onCreated(made.value.key ?? '');
    return undefined;
  };
  return (
    <Form onSend={regenerate} button="Regenerate" kind="danger">
      <p>Creates a new key. All others of this Application end, at once or after a grace period.</p>
      <label>
        Grace period in hours
        <input name="hours" type="number" min={0} step="any" defaultValue="24" required />
      </label>
    </Form>
  );
};

interface RowProps {
  readonly application: Application;
  readonly item: Key;
  readonly onUses: () => void;
  readonly onRevoked: (failure: string | undefined) => void;
}

const Row = ({ application, item, onUses, onRevoked }: RowProps) => {
  const now = session.value;
  const isInUse = now.status === 'signed_in' && now.application.key_id === item.id;
  const revoke = useOneAtATime(async () => {
    if (isInUse && !agreesToLose('this key, and your session ends with it')) return;
    const done = await call(`/applications/${application.id}/keys/${item.id}`, { method: 'DELETE' });
    onRevoked(done.ok ? undefined : textOf(done.problem));
  });
  return (
    <tr>
      <th scope="row">
        {item.name === undefined ? (
          <span class="quiet">without a name</span>
        ) : (
          <span class="key-name" dir="auto">
            {item.name}
          </span>
        )}
        <div class="quiet" title={item.id}>
          {shortId(item.id)}
          {isInUse ? ', your key' : ''}
        </div>
      </th>
      <td data-label="Created">
        <Time at={item.created_at} />
      </td>
      <td data-label="Expires">{item.expires_at === undefined ? 'never' : <Time at={item.expires_at} />}</td>
      <td data-label="Last used">
        {item.last_used_at === undefined ? 'never' : <Time at={item.last_used_at} />}
      </td>
      <td>
        <div class="buttons">
          <button type="button" class="small" onClick={onUses}>
            Uses
          </button>
          {holds('application:update') ? (
            <button type="button" class="small danger" onClick={() => void revoke()}>
              Delete
            </button>
          ) : null}
        </div>
      </td>
    </tr>
  );
};

interface TableProps {
  readonly application: Application;
  readonly onUses: (id: string) => void;
  readonly onRevoked: (failure: string | undefined) => void;
}

const KeyTable = ({ application, onUses, onRevoked }: TableProps) => (
  <div class="scroll" tabIndex={0} role="region" aria-label="Keys">
    <table>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Created</th>
          <th scope="col">Expires</th>
          <th scope="col">Last used</th>
          <th scope="col">
            <span class="hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {application.keys.map((item) => (
          <Row
            key={item.id}
            application={application}
            item={item}
            onUses={() => onUses(item.id)}
            onRevoked={onRevoked}
          />
        ))}
      </tbody>
    </table>
  </div>
);

type Open =
  | { readonly kind: 'create' }
  | { readonly kind: 'regenerate' }
  | { readonly kind: 'uses'; readonly id: string }
  | { readonly kind: 'new'; readonly key: string };

interface OpenDialogProps {
  readonly application: Application;
  readonly open: Open;
  readonly onCreated: (key: string) => void;
  readonly onClose: () => void;
}

const OpenDialog = ({ application, open, onCreated, onClose }: OpenDialogProps) => {
  switch (open.kind) {
    case 'create':
      return (
        <Dialog key="create" title="New key" onClose={onClose}>
          <CreateForm application={application} onCreated={onCreated} />
        </Dialog>
      );
    case 'regenerate':
      return (
        <Dialog key="regenerate" title="Regenerate the key" onClose={onClose}>
          <RegenerateForm application={application} onCreated={onCreated} />
        </Dialog>
      );
    case 'uses':
      return (
        <Dialog key="uses" title="Uses of the key" onClose={onClose}>
          <Uses application={application} id={open.id} />
        </Dialog>
      );
    case 'new':
      return <NewKey key="new" text={open.key} onClose={onClose} />;
  }
};

interface KeyListProps {
  readonly application: Application;
  readonly onChanged: () => void;
}

export const KeyList = ({ application, onChanged }: KeyListProps) => {
  const [open, setOpen] = useState<Open>();
  const [failure, setFailure] = useState<string>();
  const close = (): void => {
    setOpen(undefined);
    onChanged();
  };
  const onRevoked = (problem: string | undefined): void => {
    setFailure(problem);
    if (problem === undefined) onChanged();
  };
  return (
    <section class="card">
      <div class="page-head">
        <h2>Keys</h2>
        {holds('application:update') ? (
          <div class="buttons">
            <button type="button" onClick={() => setOpen({ kind: 'regenerate' })}>
              Regenerate …
            </button>
            <button type="button" class="primary" onClick={() => setOpen({ kind: 'create' })}>
              New key …
            </button>
          </div>
        ) : null}
      </div>
      {failure === undefined ? null : <Alert text={failure} />}
      {application.keys.length === 0 ? (
        <p class="quiet">There is no valid key.</p>
      ) : (
        <KeyTable
          application={application}
          onUses={(id) => setOpen({ kind: 'uses', id })}
          onRevoked={onRevoked}
        />
      )}
      {open === undefined ? null : (
        <OpenDialog
          application={application}
          open={open}
          onCreated={(key) => setOpen({ kind: 'new', key })}
          onClose={close}
        />
      )}
    </section>
  );
};
