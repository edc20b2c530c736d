import { textOf } from './api.js';
import { useLoaded } from './loaded.js';
import { Alert, lacking, NeedsPermission } from './parts.js';
import { go, parameter, withParameters } from './place.js';
import { momentFrom, utcText } from './time.js';
import type { Tenant } from './wire.js';

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
        {Object.entries(settings).map(([setting, value]) => (
          <div key={setting}>
            <dt>{setting}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
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
        <p class="quiet">Choose a moment to see the Tenant as it was then.</p>
      ) : (
        <>
          <p role="status">As of {utcText(chosen)}:</p>
          <TenantThen key={`tenant ${chosen}`} asOf={chosen} />
        </>
      )}
    </main>
  );
};

export const ThenPage = () => {
  const missing = lacking('log:read', 'tenant:read');
  return missing === undefined ? <Then /> : <NeedsPermission permission={missing} to="look at the past" />;
};
