import { useEffect, useState } from 'preact/hooks';
import { call, textOf } from './api.js';
import { useLoaded } from './loaded.js';
import { shortId } from './names.js';
import { Alert, lacking, NeedsPermission } from './parts.js';
import { go, parameter, withParameters } from './place.js';
import { SETTINGS } from './tenant-settings.js';
import { momentFrom, utcText } from './time.js';
import type { Application, ApplicationPage, Key, Tenant } from './wire.js';

const INPUT_LENGTH = 'yyyy-mm-ddThh:mm:ss'.length;

const TenantThen = ({ asOf }: { readonly asOf: string }) => {
  const [loaded] = useLoaded<Tenant>(`/tenants/self?as_of=${encodeURIComponent(asOf)}`);
  if (loaded === undefined) return <p class="quiet">Loading …</p>;
  if (!loaded.ok) return <Alert text={textOf(loaded.problem)} />;
  const { name, settings } = loaded.value;
  return (
    <section class="card">
      <h2>The Tenant</h2>
      <dl class="facts">
        <div>
          <dt>Name</dt>
          <dd dir="auto">{name}</dd>
        </div>
        {SETTINGS.map(([setting, label]) => (
          <div key={setting}>
            <dt>{label}</dt>
            <dd>{settings[setting] === 'true' ? 'yes' : 'no'}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
};

interface Past {
  readonly applications: readonly Application[];
  /** There are more than are shown. */
  readonly isMore: boolean;
}

const MAX_APPLICATIONS = 1_000;

const loadPast = async (asOf: string, abort: AbortSignal): Promise<Past | string> => {
  const applications: Application[] = [];
  let start: string | undefined;
  do {
    const query = new URLSearchParams({
      as_of: asOf,
      size: '100',
      ...(start === undefined ? {} : { start }),
    }).toString();
    const page = await call<ApplicationPage>(`/applications?${query}`, { signal: abort });
    if (!page.ok) return textOf(page.problem);
    applications.push(...page.value.data);
    start = page.value.pagination.next;
  } while (start !== undefined && applications.length < MAX_APPLICATIONS);
  return { applications, isMore: start !== undefined };
};

const keyText = ({ id, name }: Key): string =>
  name === undefined ? shortId(id) : `${name} (${shortId(id)})`;

const PastApplications = ({ applications }: { readonly applications: readonly Application[] }) => (
  <ul class="past" aria-label="Applications at that moment">
    {applications.map(({ id, name, type, keys, permissions }) => (
      <li key={id}>
        <h3>
          <span dir="auto" title={id}>
            {name}
          </span>{' '}
          <span class="quiet">{type}</span>
        </h3>
        <p dir="auto">
          {keys.length === 0
            ? 'It had no key that worked, so it could do nothing.'
            : `Keys that worked: ${keys.map(keyText).join(', ')}`}
        </p>
        <p>
          {permissions.length === 0 ? <span class="quiet">No permissions</span> : null}
          {permissions.map((permission) => (
            <code key={permission}>{permission}</code>
          ))}
        </p>
      </li>
    ))}
  </ul>
);

/** By permission, the Applications that had it and a key. */
const WhoCould = ({ applications }: { readonly applications: readonly Application[] }) => {
  const able = applications.filter(({ keys }) => keys.length > 0);
  const permissions = [...new Set(able.flatMap((application) => application.permissions))].toSorted();
  return (
    <section class="card">
      <h2>Who could do what</h2>
      {permissions.length === 0 ? <p class="quiet">Nobody could do anything.</p> : null}
      <dl class="facts permitted">
        {permissions.map((permission) => (
          <div key={permission}>
            <dt>
              <code>{permission}</code>
            </dt>
            <dd dir="auto">
              {able
                .filter((application) => application.permissions.includes(permission))
                .map(({ name }) => name)
                .join(', ')}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
};

const ApplicationsThen = ({ asOf }: { readonly asOf: string }) => {
  const [past, setPast] = useState<Past | string>();
  useEffect(() => {
    const abort = new AbortController();
    void loadPast(asOf, abort.signal).then((found) => {
      if (!abort.signal.aborted) setPast(found);
    });
    return () => abort.abort();
  }, [asOf]);
  if (past === undefined) return <p class="quiet">Loading …</p>;
  if (typeof past === 'string') return <Alert text={past} />;
  return (
    <>
      <section class="card">
        <h2>Its Applications</h2>
        {past.applications.length === 0 ? (
          <p class="quiet">There were none.</p>
        ) : (
          <PastApplications applications={past.applications} />
        )}
        {past.isMore ? (
          <p class="quiet">The first {MAX_APPLICATIONS.toLocaleString('en')} are shown.</p>
        ) : null}
      </section>
      <WhoCould applications={past.applications} />
    </>
  );
};

const Then = () => {
  const chosen = momentFrom(parameter('as_of') ?? '');
  const choose = (event: SubmitEvent): void => {
    event.preventDefault();
    const text = new FormData(event.target as HTMLFormElement).get('as_of');
    const moment = momentFrom(typeof text === 'string' ? text : '');
    if (moment !== undefined) go(withParameters({ as_of: moment }));
  };
  const shown = chosen ?? new Date().toISOString();
  return (
    <main class="page">
      <h1>Then</h1>
      <form class="card row" onSubmit={choose}>
        <label>
          Moment, in UTC
          <input
            key={chosen}
            name="as_of"
            type="datetime-local"
            step={1}
            required
            defaultValue={shown.slice(0, INPUT_LENGTH)}
          />
        </label>
        <button type="submit" class="primary">
          Show
        </button>
      </form>
      {chosen === undefined ? (
        <p class="quiet">Choose a moment to see the Tenant and its Applications as they were then.</p>
      ) : (
        <>
          <p role="status">As of {utcText(chosen)}:</p>
          <TenantThen key={`tenant ${chosen}`} asOf={chosen} />
          {lacking('application:read') === undefined ? (
            <ApplicationsThen key={`applications ${chosen}`} asOf={chosen} />
          ) : (
            <p class="quiet">
              To see its Applications, a key needs the permission <code>application:read</code>.
            </p>
          )}
        </>
      )}
    </main>
  );
};

export const ThenPage = () => {
  const missing = lacking('log:read', 'tenant:read');
  return missing === undefined ? <Then /> : <NeedsPermission permission={missing} to="look at the past" />;
};
