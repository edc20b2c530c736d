import { useState } from 'preact/hooks';
import { ApplicationsThen, AsOfChoice } from './as-of.js';
import { holds } from './api.js';
import { NewApplicationForm, type Made } from './application-form.js';
import { ApplicationList } from './application-list.js';
import { ApplicationView } from './application-view.js';
import { Dialog, NewKey } from './parts.js';
import { addressOf, go, parameter, withParameters } from './place.js';

const Applications = () => {
  const asOf = parameter('as_of');
  const [isCreating, setCreating] = useState(parameter('open') === 'new');
  const [made, setMade] = useState<Made>();
  const close = (): void => {
    setCreating(false);
    if (parameter('open') !== undefined) go(withParameters({ open: undefined }), { replace: true });
  };
  return (
    <main class="page">
      <div class="head">
        <h1>Applications</h1>
        <AsOfChoice />
        {holds('application:create') && asOf === undefined ? (
          <button class="primary" onClick={() => setCreating(true)}>
            New Application …
          </button>
        ) : null}
      </div>
      {asOf === undefined ? <ApplicationList /> : <ApplicationsThen asOf={asOf} />}
      {isCreating ? (
        <Dialog title="New Application" onClose={close}>
          <NewApplicationForm
            onDone={(done) => {
              close();
              setMade(done);
            }}
          />
        </Dialog>
      ) : null}
      {made === undefined ? null : (
        <NewKey
          text={made.key}
          failure={made.failure}
          onClose={() => go(addressOf('applications', { id: made.id }))}
          onAgain={() => go(addressOf('applications', { id: made.id, open: 'key' }))}
        />
      )}
    </main>
  );
};

export const ApplicationsPage = () => {
  const id = parameter('id');
  return id === undefined ? <Applications /> : <ApplicationView id={id} key={id} />;
};
