import { useState } from 'preact/hooks';
import { holds, isOwn } from './api.js';
import { EditApplicationForm } from './application-form.js';
import { KeyList } from './key-list.js';
import { useLoaded } from './loaded.js';
import { Agreement, counted, Dialog, Facts, Form, IdText, Time, Waiting } from './parts.js';
import { addressOf, go } from './place.js';
import type { Application } from './wire.js';

interface DialogProps {
  readonly application: Application;
  readonly etag: string;
  readonly onClose: () => void;
}

const DeleteDialog = ({ application, etag, onClose }: DialogProps) => {
  const headers = { 'If-Match': etag };
  return (
    <Dialog title="Delete the Application" onClose={onClose}>
      <Form
        onSend={(_, write) => write(`/applications/${application.id}`, { method: 'DELETE', headers })}
        onDone={() => go(addressOf('applications'))}
        button="Delete"
        kind="danger"
      >
        <p>
          <strong class="name" dir="auto">
            {application.name}
          </strong>{' '}
          and its {counted(application.keys.length, 'key')} stop working at once.
        </p>
        {isOwn(application) ? (
          <Agreement text="a key of this Application, and your session ends with it" />
        ) : null}
      </Form>
    </Dialog>
  );
};

const About = ({ application: { id, type, created_at, permissions } }: { application: Application }) => (
  <section class="card">
    <Facts
      facts={{
        Type: type,
        Id: <IdText id={id} />,
        Created: <Time at={created_at} />,
        Permissions:
          permissions.length === 0
            ? 'none'
            : permissions.map((permission) => <code key={permission}>{permission}</code>),
      }}
    />
    <p class="buttons">
      <a href={addressOf('logs', { actor_id: id })}>What it did</a>
      <a href={addressOf('logs', { entity_type: 'application', entity_id: id })}>What was done to it</a>
    </p>
  </section>
);

/** One Application with its keys. */
export const ApplicationView = ({ id }: { readonly id: string }) => {
  const path = `/applications/${encodeURIComponent(id)}`;
  const { loaded, value: application, etag, reload } = useLoaded<Application>(path);
  const [dialog, setDialog] = useState<'edit' | 'delete'>();
  const close = (): void => {
    setDialog(undefined);
    reload();
  };
  return (
    <main class="page">
      <div class="head">
        <h1 class="name" dir="auto">
          {application?.name ?? 'Application'}
        </h1>
        {application === undefined ? null : (
          <div class="buttons">
            {holds('application:update') ? <button onClick={() => setDialog('edit')}>Edit …</button> : null}
            {holds('application:delete') ? (
              <button class="danger" onClick={() => setDialog('delete')}>
                Delete …
              </button>
            ) : null}
          </div>
        )}
      </div>
      <Waiting loaded={loaded} />
      {application === undefined ? null : (
        <>
          <About application={application} />
          <KeyList application={application} onChanged={reload} />
          {dialog === 'edit' ? (
            <Dialog title="Edit the Application" onClose={close}>
              <EditApplicationForm application={application} etag={etag} onDone={close} />
            </Dialog>
          ) : null}
          {dialog === 'delete' ? (
            <DeleteDialog application={application} etag={etag} onClose={close} />
          ) : null}
        </>
      )}
    </main>
  );
};
