import { useState } from 'preact/hooks';
import { holds, isOwnKey, type Result, type Write } from './api.js';
import { Expiry, expiryIn, textIn } from './moment-input.js';
import { expiresSoon, isUnused, UNUSED_DAYS } from './key-state.js';
import { UseBars, Uses } from './key-uses.js';
import { shortId } from './names.js';
import { Ago, Dialog, Form, NewKey, Table, type Cells } from './parts.js';
import { addressOf, go, parameter, withParameters } from './place.js';
import { RevokeDialog } from './revoke-key.js';
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
  const create = (form: FormData, write: Write): Promise<Result<Key>> => {
    const body = { name: textIn(form, 'name'), expires_at: expiryIn(form) };
    return write(`/applications/${application.id}/keys`, { method: 'POST', body });
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

type Open =
  | { readonly kind: 'create' }
  | { readonly kind: 'uses' | 'revoke'; readonly item: Key }
  | { readonly kind: 'new'; readonly key: string | undefined };

const cellsOf = ({ application, item }: KeyProps, onOpen: (open: Open) => void): Cells => [
  <KeyName item={item} />,
  <span class={stateOf(item)[0]}>{stateOf(item)[1]}</span>,
  <UseBars path={pathOf({ application, item })} />,
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

interface OpenDialogProps {
  readonly application: Application;
  readonly open: Open;
  readonly onOpen: (open: Open) => void;
  readonly onClose: (revoked?: Key) => void;
}

const OpenDialog = ({ application, open, onOpen, onClose }: OpenDialogProps) => {
  const close = (): void => onClose();
  switch (open.kind) {
    case 'create':
      return (
        <Dialog title="New key" onClose={close}>
          <CreateForm application={application} onCreated={(key) => onOpen({ kind: 'new', key })} />
        </Dialog>
      );
    case 'new':
      return <NewKey text={open.key} onClose={close} onAgain={() => onOpen({ kind: 'create' })} />;
    case 'uses':
      return (
        <Dialog title="Uses of the key" onClose={close}>
          <Uses path={pathOf({ application, item: open.item })} />
        </Dialog>
      );
    case 'revoke':
      return (
        <RevokeDialog
          applicationId={application.id}
          id={open.item.id}
          onClose={close}
          onDone={() => onClose(open.item)}
        >
          <KeyName item={open.item} />, last used: <Ago at={open.item.last_used_at} />.
        </RevokeDialog>
      );
  }
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
          <button class="primary" onClick={() => setOpen({ kind: 'create' })}>
            New key …
          </button>
        ) : null}
      </div>
      {keys.length === 0 ? <p class="quiet">There is no valid key.</p> : null}
      <Table
        titles={['Name', 'State', 'Last 30 days', 'Last used', 'Expires', 'Actions']}
        rows={keys.map((item) => cellsOf({ application, item }, setOpen))}
        ids={keys.map(({ id }) => id)}
      />
      {open === undefined ? null : (
        <OpenDialog application={application} open={open} onOpen={setOpen} onClose={close} />
      )}
    </section>
  );
};
