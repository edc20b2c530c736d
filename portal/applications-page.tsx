import { useState } from 'preact/hooks';
import { holds, textOf } from './api.js';
import { ApplicationForm } from './application-form.js';
import { ApplicationView } from './application-view.js';
import { useLoaded } from './loaded.js';
import { Alert, Dialog, lacking, NeedsPermission, NewKey, Time } from './parts.js';
import { addressOf, go, parameter, withParameters } from './place.js';
import type { Application, ApplicationPage } from './wire.js';

const Rows = ({ applications }: { readonly applications: readonly Application[] }) => (
  <div class="scroll" tabIndex={0} role="region" aria-label="Applications">
    <table>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Type</th>
          <th scope="col" class="number">
            Permissions
          </th>
          <th scope="col" class="number">
            Keys
          </th>
          <th scope="col">Created</th>
        </tr>
      </thead>
      <tbody>
        {applications.map(({ id, name, type, permissions, keys, created_at }) => (
          <tr key={id}>
            <th scope="row" dir="auto">
              <a class="target" href={withParameters({ id })}>
                {name}
              </a>
            </th>
            <td data-label="Type">{type}</td>
            <td class="number" data-label="Permissions">
              {permissions.length}
            </td>
            <td class="number" data-label="Keys">
              {keys.length}
            </td>
            <td data-label="Created">
              <Time at={created_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

const List = () => {
  const start = parameter('start');
  const query = new URLSearchParams({ size: '50', ...(start === undefined ? {} : { start }) }).toString();
  const [loaded, reload] = useLoaded<ApplicationPage>(`/applications?${query}`);
  const [isCreating, setCreating] = useState(false);
  const [created, setCreated] = useState<Application>();
  const next = loaded?.ok === true ? loaded.value.pagination.next : undefined;
  return (
    <main class="page">
      <div class="page-head">
        <h1>Applications</h1>
        {holds('application:create') ? (
          <button type="button" class="primary" onClick={() => setCreating(true)}>
            New Application …
          </button>
        ) : null}
      </div>
      <section class="card">
        {loaded === undefined ? <p class="quiet">Loading …</p> : null}
        {loaded?.ok === false ? <Alert text={textOf(loaded.problem)} /> : null}
        {loaded?.ok === true ? <Rows applications={loaded.value.data} /> : null}
        {next === undefined ? null : <a href={withParameters({ start: next })}>More</a>}
      </section>
      {isCreating ? (
        <Dialog title="New Application" onClose={() => setCreating(false)}>
          <ApplicationForm
            onDone={(application) => {
              setCreating(false);
              setCreated(application);
              reload();
            }}
          />
        </Dialog>
      ) : null}
      {created?.key === undefined ? null : (
        <NewKey
          text={created.key}
          onClose={() => {
            setCreated(undefined);
            go(addressOf('applications', [['id', created.id]]));
          }}
        />
      )}
    </main>
  );
};

export const ApplicationsPage = () => {
  const id = parameter('id');
  if (lacking('application:read') !== undefined)
    return <NeedsPermission permission="application:read" to="see Applications" />;
  return id === undefined ? <List /> : <ApplicationView id={id} key={id} />;
};
