import { useState } from 'preact/hooks';
import { agreesToLose, call, holds, isOwn, textOf } from './api.js';
import { ApplicationForm } from './application-form.js';
import { KeyList } from './key-list.js';
import { useLoaded } from './loaded.js';
import { forgetNames } from './names.js';
import { Alert, Dialog, Form, Time } from './parts.js';
import { addressOf, go } from './place.js';
import type { Application } from './wire.js';

interface DialogProps {
  readonly application: Application;
  readonly etag: string | undefined;
  readonly onClose: () => void;
}

const DeleteDialog = ({ application, etag, onClose }: DialogProps) => {
  const remove = async (): Promise<string | undefined> => {
    if (isOwn(application) && !agreesToLose('a key of this Application, and your session ends with it'))
      return undefined;
    const done = await call(`/applications/${application.id}`, {
      method: 'DELETE',
      ...(etag === undefined ? {} : { headers: { 'If-Match': etag } }),
    });
    if (!done.ok) return textOf(done.problem);
    forgetNames();
    go(addressOf('applications'));
    return undefined;
  };
  return (
    <Dialog title="Delete the Application" onClose={onClose}>
      <Form onSend={remove} button="Delete" kind="danger">
        <p>
          <strong class="name" dir="auto">
            {application.name}
          </strong>{' '}
          and its {application.keys.length} keys stop working at once.
        </p>
      </Form>
    </Dialog>
  );
};

const EditDialog = ({ application, etag, onClose }: DialogProps) => (
  <Dialog title="Edit the Application" onClose={onClose}>
    <ApplicationForm
      application={application}
      etag={etag}
      onDone={() => {
        forgetNames();
        onClose();
      }}
    />
  </Dialog>
);

const Facts = ({ application }: { readonly application: Application }) => (
  <section class="card">
    <dl class="facts">
      <div>
        <dt>Type</dt>
        <dd>{application.type}</dd>
      </div>
      <div>
        <dt>Id</dt>
        <dd>{application.id}</dd>
      </div>
      <div>
        <dt>Created</dt>
        <dd>
          <Time at={application.created_at} />
        </dd>
      </div>
      <div>
        <dt>Permissions</dt>
        <dd>
          {application.permissions.length === 0 ? 'none' : null}
          {application.permissions.map((permission) => (
            <code key={permission}>{permission}</code>
          ))}
        </dd>
      </div>
    </dl>
    <p>
      <a class="target" href={addressOf('logs', [['actor_id', application.id]])}>
        What it did
      </a>{' '}
      <a class="target" href={addressOf('logs', [['entity_id', application.id]])}>
        What was done to it
      </a>
    </p>
  </section>
);

/** One Application with its keys. */
export const ApplicationView = ({ id }: { readonly id: string }) => {
  const [loaded, reload] = useLoaded<Application>(`/applications/${encodeURIComponent(id)}`);
  const [dialog, setDialog] = useState<'edit' | 'delete'>();
  const close = (): void => {
    setDialog(undefined);
    reload();
  };
  const application = loaded?.ok === true ? loaded.value : undefined;
  const etag = loaded?.ok === true ? loaded.etag : undefined;
  return (
    <main class="page">
      <p>
        <a class="target" href={addressOf('applications')}>
          All Applications
        </a>
      </p>
      {loaded?.ok === false ? <Alert text={textOf(loaded.problem)} /> : null}
      {application === undefined ? null : (
        <>
          <div class="page-head">
            <h1 class="name" dir="auto">
              {application.name}
            </h1>
            <div class="buttons">
              {holds('application:update') ? (
                <button type="button" onClick={() => setDialog('edit')}>
                  Edit …
                </button>
              ) : null}
              {holds('application:delete') ? (
                <button type="button" class="danger" onClick={() => setDialog('delete')}>
                  Delete …
                </button>
              ) : null}
            </div>
          </div>
          <Facts application={application} />
          <KeyList application={application} onChanged={reload} />
          {dialog === 'edit' ? <EditDialog application={application} etag={etag} onClose={close} /> : null}
          {dialog === 'delete' ? (
            <DeleteDialog application={application} etag={etag} onClose={close} />
          ) : null}
        </>
      )}
    </main>
  );
};
