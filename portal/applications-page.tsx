import { useState } from 'preact/hooks';
import { ApplicationsThen, AsOfChoice } from './as-of.js';
import { holds } from './api.js';
import { NewApplicationForm } from './application-form.js';
import { ApplicationView } from './application-view.js';
import { useLoaded } from './loaded.js';
import { Dialog, NewKey, TableHead, Time, Waiting } from './parts.js';
import { addressOf, go, parameter, withParameters } from './place.js';
import type { Application, ApplicationPage } from './wire.js';

const Rows = ({ applications }: { readonly applications: readonly Application[] }) => (
  <table class="stacked">
    <TableHead titles={['Name', 'Type', 'Permissions', 'Keys', 'Created']} />
    <tbody>
      {applications.map(({ id, name, type, permissions, keys, created_at }) => (
        <tr key={id}>
          <th scope="row" dir="auto">
            <a href={withParameters({ id })}>{name}</a>
          </th>
          <td data-label="Type">{type}</td>
          <td data-label="Permissions">{permissions.length}</td>
          <td data-label="Keys">{keys.length}</td>
          <td data-label="Created">
            <Time at={created_at} />
          </td>
        </tr>
      ))}
    </tbody>
  </table>
);

const List = () => {
  const start = parameter('start');
  const query = new URLSearchParams({ size: '50', ...(start === undefined ? {} : { start }) }).toString();
  const [loaded] = useLoaded<ApplicationPage>(`/applications?${query}`);
  if (loaded?.ok !== true) return <Waiting loaded={loaded} />;
  const { data, pagination } = loaded.value;
  const { next } = pagination;
  return (
    <section class="card">
      <Rows applications={data} />
      {next === undefined ? null : <a href={withParameters({ start: next })}>More</a>}
    </section>
  );
};

const Applications = () => {
  const asOf = parameter('as_of');
  const [isCreating, setCreating] = useState(false);
  const [created, setCreated] = useState<Application>();
  return (
    <main class="page">
      <div class="head">
        <h1>Applications</h1>
        <AsOfChoice />
        {holds('application:create') && asOf === undefined ? (
          <button type="button" class="primary" onClick={() => setCreating(true)}>
            New Application …
          </button>
        ) : null}
      </div>
      {asOf === undefined ? <List /> : <ApplicationsThen asOf={asOf} />}
      {isCreating ? (
        <Dialog title="New Application" onClose={() => setCreating(false)}>
          <NewApplicationForm
            onDone={(application) => {
              setCreating(false);
              setCreated(application);
            }}
          />
        </Dialog>
      ) : null}
      {created === undefined ? null : (
        <NewKey
          text={created.key}
          onClose={() => go(addressOf('applications', { id: created.id }))}
          onAgain={() => go(addressOf('applications', { id: created.id, open: 'key' }))}
        />
      )}
    </main>
  );
};

export const ApplicationsPage = () => {
  const id = parameter('id');
  return id === undefined ? <Applications /> : <ApplicationView id={id} key={id} />;
};
