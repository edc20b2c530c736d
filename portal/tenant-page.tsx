import { useState } from 'preact/hooks';
import { AsOfChoice, TenantThen } from './as-of.js';
import { endSession, holds, tenantName } from './api.js';
import { EditForm, NameField, type Fields } from './editing.js';
import { useLoaded } from './loaded.js';
import { Dialog, Facts, Form, IdText, Time, Waiting } from './parts.js';
import { parameter } from './place.js';
import { labelOf, SETTINGS, tenantFields } from './tenant-fields.js';
import { valueText } from './words.js';
import type { Tenant } from './wire.js';

interface TenantProps {
  readonly tenant: Tenant;
  readonly etag: string;
  readonly onDone: () => void;
}

const DELETED = 'The Tenant was deleted, and with it the key that you had signed in with.';

const DeleteDialog = ({ tenant, etag, onDone }: TenantProps) => {
  const [typed, setTyped] = useState('');
  const headers = { 'If-Match': etag };
  return (
    <Dialog title="Delete the Tenant" onClose={onDone}>
      <Form
        onSend={(_, write) => write('/tenants/self', { method: 'DELETE', headers })}
        onDone={() => endSession(DELETED)}
        button="Delete"
        kind="danger"
        isReady={typed === tenant.name}
      >
        <p>
          All its keys stop working at once, this session too. Its history is kept. This cannot be undone. To
          confirm, type its name:{' '}
          <strong class="name" dir="auto">
            {tenant.name}
          </strong>
        </p>
        <label>
          Name of the Tenant
          <input
            value={typed}
            autofocus
            autocomplete="off"
            onInput={({ currentTarget }) => setTyped(currentTarget.value)}
          />
        </label>
      </Form>
    </Dialog>
  );
};

const EDITABLE = {
  path: '/tenants/self',
  log: 'entity_type=tenant',
  labelOf,
  fieldsOf: tenantFields,
  bodyOf: ({ name = '', ...settings }: Fields) => ({ name, settings }),
};

const TenantForm = ({ tenant, etag, onDone }: TenantProps) => {
  const [isSaved, setSaved] = useState(false);
  const done = (now: Tenant): void => {
    tenantName.value = now.name;
    setSaved(true);
    onDone();
  };
  return (
    <section class="card">
      <EditForm value={tenant} etag={etag} editable={EDITABLE} onDone={done}>
        {(draft, change, base) => (
          <>
            <NameField fields={draft} onChange={change} />
            {SETTINGS.map(([name, label]) => (
              <label key={name} class="check">
                <input
                  type="checkbox"
                  checked={draft[name] === 'true'}
                  onChange={({ currentTarget: { checked } }) => change({ ...draft, [name]: String(checked) })}
                />
                {label}
              </label>
            ))}
            {isSaved && draft === base ? <p role="status">Saved.</p> : null}
          </>
        )}
      </EditForm>
    </section>
  );
};

/** For those who may not change it. */
const TenantText = ({ tenant }: { readonly tenant: Tenant }) => (
  <section class="card">
    <Facts
      facts={Object.fromEntries(
        Object.entries(tenantFields(tenant)).map(([name, value]) => [labelOf(name), valueText(value, name)]),
      )}
    />
    <p class="quiet">
      To change it, a key needs the permission <code>tenant:update</code>.
    </p>
  </section>
);

const TenantNow = (props: TenantProps) => {
  const { tenant } = props;
  const [isDeleting, setDeleting] = useState(false);
  return (
    <>
      {holds('tenant:update') ? <TenantForm {...props} /> : <TenantText tenant={tenant} />}
      <section class="card">
        <Facts
          facts={{
            Id: <IdText id={tenant.id} />,
            Created: <Time at={tenant.created_at} />,
            Changed: tenant.modified_at && <Time at={tenant.modified_at} />,
          }}
        />
        {holds('tenant:delete') ? (
          <button class="danger" onClick={() => setDeleting(true)}>
            Delete the Tenant …
          </button>
        ) : null}
      </section>
      {isDeleting ? <DeleteDialog {...props} onDone={() => setDeleting(false)} /> : null}
    </>
  );
};

export const TenantPage = () => {
  const asOf = parameter('as_of');
  const { loaded, value: tenant, etag, reload } = useLoaded<Tenant>('/tenants/self');
  return (
    <main class="page">
      <div class="head">
        <h1>Tenant</h1>
        <AsOfChoice />
      </div>
      <Waiting loaded={loaded} />
      {tenant && asOf !== undefined ? <TenantThen asOf={asOf} now={tenant} /> : null}
      {tenant && asOf === undefined ? <TenantNow tenant={tenant} etag={etag} onDone={reload} /> : null}
    </main>
  );
};
