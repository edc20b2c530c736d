import { useState } from 'preact/hooks';
import { holds, isOwn, isOwnKey, type Result, type Write } from './api.js';
import { Expiry, expiryIn, textIn } from './moment-input.js';
import { expiresSoon, isUnused, UNUSED_DAYS } from './key-state.js';
import { UseBars, Uses } from './key-uses.js';
import { shortId } from './names.js';
import { Ago, Agreement, Dialog, Form, NewKey, Table, type Cells } from './parts.js';
import { addressOf, go, parameter, withParameters } from './place.js';
import { RevokeForm } from './revoke-key.js';
import type { Application, Key } from './wire.js';

interface KeyProps {
  readonly application: Application;
  readonly item: Key;
}

const pathOf = ({ application, item }: KeyProps): string => `/applications/${application.id}/keys/${item.id}`;

const KeyName = ({ item }: { readonly item: Key }) => (
  <>
    {item.name === undefined ? (
      <span class="quiet">without a name</span>
    ) : (
      <span class="key-name" dir="auto">
        {item.name}
      </span>
    )}{' '}
    <span class="quiet" title={item.id}>
      {shortId(item.id)}
      {isOwnKey(item.id) ? ', your key' : ''}
    </span>
  </>
);

/** What somebody should know of first. */
const stateOf = (item: Key): readonly [string, string] => {
  if (expiresSoon(item)) return ['warn', 'expires soon'];
  if (isUnused(item)) return ['warn', `unused for ${UNUSED_DAYS} days`];
  return item.last_used_at === undefined ? ['quiet', 'not used yet'] : ['good', 'in use'];
};

interface CreateProps {
  readonly application: Application;
  /** The key is absent if it was lost on the way. */
  readonly onCreated: (key: string | undefined) => void;
}

const CreateForm = ({ application, onCreated }: CreateProps) => {
  const create = async (form: FormData, write: Write): Promise<Result<Key> | string> => {
    const { expires_at, refused } = expiryIn(form);
    const body = { name: textIn(form, 'name'), expires_at };
    return refused ?? write<Key>(`/applications/${application.id}/keys`, { method: 'POST', body });
  };
  return (
    <Form onSend={create} onDone={({ key }) => onCreated(key)} button="Create" kind="primary">
      <label>
        Name
        <input name="name" maxLength={200} dir="auto" placeholder="What it is for" autofocus />
      </label>
      <Expiry />
    </Form>
  );
};

const RegenerateForm = ({ application, onCreated }: CreateProps) => {
  const regenerate = (form: FormData, write: Write): Promise<Result<Application>> => {
    const body = { grace_seconds: Math.round(Number(textIn(form, 'hours') ?? 0) * 3_600) };
    return write(`/applications/${application.id}/regenerate`, { method: 'POST', body });
  };
  return (
    <Form onSend={regenerate} onDone={({ key }) => onCreated(key)} button="Regenerate" kind="danger">
      <p>Creates a new key. These end, at once or after a grace period:</p>
      <ul aria-label="Keys that end">
        {application.keys.map((item) => (
          <li key={item.id}>
            <KeyName item={item} />, last used: <Ago at={item.last_used_at} />
          </li>
        ))}
      </ul>
      <label>
        Grace period in hours
        <input name="hours" type="number" min={0} step="any" defaultValue="24" required autofocus />
      </label>
      {isOwn(application) ? <Agreement text="one of the keys that end" /> : null}
    </Form>
  );
};

type Open =
  | { readonly kind: 'create' | 'regenerate' }
  | { readonly kind: 'uses' | 'revoke'; readonly item: Key }
  | { readonly kind: 'new'; readonly key: string | undefined };

const cellsOf = ({ application, item }: KeyProps, onOpen: (open: Open) => void): Cells => [
  <KeyName item={item} />,
  <span class={stateOf(item)[0]}>{stateOf(item)[1]}</span>,
  <UseBars key={item.id} path={pathOf({ application, item })} />,
  <Ago at={item.last_used_at} />,
  <Ago at={item.expires_at} />,
  <div class="buttons">
    <button class="small" onClick={() => onOpen({ kind: 'uses', item })}>
      Uses
    </button>
    <a class="button small" href={addressOf('logs', { entity_type: 'key', entity_id: item.id })}>
      Log
    </a>
    {holds('application:update') ? (
      <button class="small danger" onClick={() => onOpen({ kind: 'revoke', item })}>
        Revoke …
      </button>
    ) : null}
  </div>,
];

const TITLES = {
  create: 'New key',
  regenerate: 'Regenerate the key',
  uses: 'Uses of the key',
  revoke: 'Revoke the key',
};

interface OpenDialogProps {
  readonly application: Application;
  readonly open: Open;
  readonly onOpen: (open: Open) => void;
  readonly onClose: (revoked?: Key) => void;
}

const OpenDialog = ({ application, open, onOpen, onClose }: OpenDialogProps) => {
  const { kind } = open;
  const onCreated = (key: string | undefined): void => onOpen({ kind: 'new', key });
  if (kind === 'new')
    return (
      <NewKey
        key="new"
        text={open.key}
        onClose={() => onClose()}
        onAgain={() => onOpen({ kind: 'create' })}
      />
    );
  return (
    <Dialog key={kind} title={TITLES[kind]} onClose={() => onClose()}>
      {kind === 'create' ? <CreateForm application={application} onCreated={onCreated} /> : null}
      {kind === 'regenerate' ? <RegenerateForm application={application} onCreated={onCreated} /> : null}
      {kind === 'uses' ? <Uses path={pathOf({ application, item: open.item })} /> : null}
      {kind === 'revoke' ? (
        <RevokeForm applicationId={application.id} id={open.item.id} onDone={() => onClose(open.item)}>
          <KeyName item={open.item} /> is refused from now on, for good. Last used:{' '}
          <Ago at={open.item.last_used_at} />.
        </RevokeForm>
      ) : null}
    </Dialog>
  );
};

export const KeyList = ({ application, onChanged }: { application: Application; onChanged: () => void }) => {
  const [open, setOpen] = useState<Open | undefined>(
    parameter('open') === 'key' ? { kind: 'create' } : undefined,
  );
  const [gone, setGone] = useState<string>();
  const keys = application.keys.filter(({ id }) => id !== gone).toReversed();
  const close = (revoked?: Key): void => {
    setOpen(undefined);
    if (revoked !== undefined) setGone(revoked.id);
    if (parameter('open') !== undefined) go(withParameters({ open: undefined }), { replace: true });
    onChanged();
  };
  return (
    <section class="card">
      <div class="head">
        <h2>Keys</h2>
        {holds('application:update') ? (
          <div class="buttons">
            <button onClick={() => setOpen({ kind: 'regenerate' })}>Regenerate …</button>
            <button class="primary" onClick={() => setOpen({ kind: 'create' })}>
              New key …
            </button>
          </div>
        ) : null}
      </div>
      {keys.length === 0 ? <p class="quiet">There is no valid key.</p> : null}
      <Table
        titles={['Name', 'State', 'Last 30 days', 'Last used', 'Expires', 'Actions']}
        rows={keys.map((item) => cellsOf({ application, item }, setOpen))}
      />
      {open === undefined ? null : (
        <OpenDialog application={application} open={open} onOpen={setOpen} onClose={close} />
      )}
    </section>
  );
};
