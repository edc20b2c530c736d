import { loadApplications } from './all-applications.js';
import { holds } from './api.js';
import { leave } from './leaving.js';
import { useAsked, useLoaded } from './loaded.js';
import { MomentInput } from './moment-input.js';
import { shortId } from './names.js';
import { Table, Waiting, type Cells } from './parts.js';
import { go, parameter, timeStyle, withParameters } from './place.js';
import { labelOf, tenantFields } from './tenant-fields.js';
import { zoneOf } from './time.js';
import { valueText } from './words.js';
import type { Application, Tenant } from './wire.js';

/** Which moment a page shows. The past is part of the log, and needs its permission. */
export const AsOfChoice = () => {
  const asOf = parameter('as_of');
  const choose = (moment?: string): void => leave(() => go(withParameters({ as_of: moment })));
  if (!holds('log:read')) return null;
  return (
    <div class="choices">
      <MomentInput label={`As of, ${zoneOf(timeStyle.value)}`} moment={asOf} onChoose={choose} />
      {asOf === undefined ? null : <button onClick={() => choose()}>Now</button>}
    </div>
  );
};

/** The Tenant as it was, beside what it is now. */
export const TenantThen = ({ asOf, now }: { readonly asOf: string; readonly now: Tenant }) => {
  const { loaded, value } = useLoaded<Tenant>(`/tenants/self?as_of=${encodeURIComponent(asOf)}`);
  if (value === undefined) return <Waiting loaded={loaded} />;
  const [then, current] = [tenantFields(value), tenantFields(now)];
  const rows = Object.keys(current).map((name) => {
    const text = valueText(current[name], name);
    const isSame = then[name] === current[name];
    const since = isSame ? <span class="quiet">same</span> : <ins>{text}</ins>;
    return [labelOf(name), valueText(then[name], name), since];
  });
  return (
    <section class="card">
      <Table titles={['Field', 'Then', 'Now']} rows={rows} />
    </section>
  );
};

const keyTexts = ({ keys }: Application): readonly string[] =>
  keys.map(({ id, name }) => (name === undefined ? shortId(id) : `${name} (${shortId(id)})`));

const missing = (from: readonly string[], there: readonly string[]): string =>
  from.filter((one) => !there.includes(one)).join(', ');

/** What became of an Application since. */
const differences = (then: Application, now: Application | undefined): readonly string[] => {
  if (now === undefined) return ['deleted'];
  return [
    ['renamed to', then.name === now.name ? '' : now.name],
    ['gained', missing(now.permissions, then.permissions)],
    ['lost', missing(then.permissions, now.permissions)],
    ['keys ended:', missing(keyTexts(then), keyTexts(now))],
    ['keys added:', missing(keyTexts(now), keyTexts(then))],
  ].flatMap(([what, which]) => (which === '' ? [] : [`${what} ${which}`]));
};

const cellsOf = (then: Application, now: readonly Application[]): Cells => {
  const changes = differences(
    then,
    now.find(({ id }) => id === then.id),
  );
  return [
    <span title={then.id}>
      {then.name} <span class="quiet">{then.type}</span>
    </span>,
    then.permissions.map((permission) => <code key={permission}>{permission}</code>),
    keyTexts(then).join(', ') || 'none, so it could do nothing',
    changes.length === 0 ? <span class="quiet">same</span> : <ins>{changes.join('; ')}</ins>,
  ];
};

/** The Applications as they were: who could do what, and what differs from now. */
export const ApplicationsThen = ({ asOf }: { readonly asOf: string }) => {
  const { loaded, value: then } = useAsked(asOf, (abort) => loadApplications(abort, asOf));
  const { loaded: loadedNow, value: now } = useAsked('now', loadApplications);
  if (then === undefined) return <Waiting loaded={loaded} />;
  if (now === undefined) return <Waiting loaded={loadedNow} />;
  const created = now.filter(({ id }) => !then.some((one) => one.id === id)).map(({ name }) => name);
  return (
    <section class="card">
      {then.length === 0 ? <p>There were none.</p> : null}
      <Table
        titles={['Name', 'Permissions', 'Keys that worked', 'Since then']}
        rows={then.map((one) => cellsOf(one, now))}
      />
      {created.length === 0 ? null : <p dir="auto">Created since then: {created.join(', ')}.</p>}
    </section>
  );
};
